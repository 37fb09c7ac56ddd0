import { finished } from 'node:stream/promises'
import type { CallToolRequestParams } from '@modelcontextprotocol/server'
import packageFile from '../../../package.json' with { type: 'json' }
import { importOptional } from '../../errors/not-installed-error.ts'
import { callTool, listTools, UNTRUSTED } from '../mcp/tools.ts'
import { type Command, type CommandContext, type CommandInput, EXIT_GOOD } from '../shared/command.ts'
import { CallError, openService, SERVICE_OPTIONS, type ServiceCaller } from '../shared/service-caller.ts'

const instructions = `Reads payments, payment requests and routes of one Waybill account, and changes nothing. Amounts are decimal strings in human units beside their currency: never round them. ${UNTRUSTED}`

/** `mcp --url URL`: tools for models over standard input and output. */
export const commands: readonly Command[] = [
  {
    path: ['mcp'],
    summary:
      'Give models tools that read a running service, over standard input and output, by the Model Context Protocol. The scopes of the key decide which tools there are.',
    takes: SERVICE_OPTIONS,
    environment: [],
    run,
  },
]

async function run({ options }: CommandInput, context: CommandContext): Promise<number> {
  const service = await openService(options, context)
  const [sdk, { serveStdio, StdioServerTransport }] = await loadPackage()
  const { stdin, stdout, stderr, signal } = context
  const handle = serveStdio(
    () => {
      const server = new sdk.Server(
        { name: 'waybill', version: packageFile.version },
        { capabilities: { tools: {} }, instructions },
      )
      server.setRequestHandler('tools/list', async (_, { mcpReq }) => ({
        tools: await listTools(service, mcpReq.signal),
      }))
      server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => answer(service, params, mcpReq.signal))
      return server
    },
    { transport: new StdioServerTransport(stdin, stdout), onerror: ({ message }) => stderr.write(`${message}\n`) },
  )
  stderr.write(`models may read ${service.url}\n`)
  await finished(stdin, { writable: false, signal }).catch(() => {})
  await handle.close()
  return EXIT_GOOD
}

async function answer(service: ServiceCaller, params: CallToolRequestParams, signal: AbortSignal) {
  try {
    const { answer: structuredContent, text } = await callTool(service, params, signal)
    return { content: [{ type: 'text' as const, text }], structuredContent }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return { content: [{ type: 'text' as const, text: error.message }], isError: true }
  }
}

/** Loaded only here: nothing else of the program needs it. */
const loadPackage = () =>
  importOptional('mcp', () =>
    Promise.all([import('@modelcontextprotocol/server'), import('@modelcontextprotocol/server/stdio')]),
  )
