import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import type { CallToolRequestParams } from '@modelcontextprotocol/server'
import { CallError, createServiceCaller, type ServiceCaller } from '../mcp/service-caller.ts'
import { callTool, listTools, UNTRUSTED } from '../mcp/tools.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  EXIT_GOOD,
  parseAccountName,
  UsageError,
} from '../shared/command.ts'

const KEY_VARIABLE = 'WAYBILL_API_KEY'
const instructions = `Reads payments, payment requests and routes of one Waybill account, and changes nothing. Amounts are decimal strings in human units beside their currency: never round them. ${UNTRUSTED}`

/** `mcp --url URL`: tools for models over standard input and output. */
export const commands: readonly Command[] = [
  {
    path: ['mcp'],
    summary:
      'Give models tools that read a running service, over standard input and output, by the Model Context Protocol.',
    takes: {
      '--url URL': 'where the service answers: https://pay.example',
      '[--key-file FILE]': `file of the API key, whose scopes decide which tools there are (default: the variable ${KEY_VARIABLE})`,
      '[--account A]': "the account that a platform's key reads",
    },
    environment: [],
    run,
  },
]

async function run({ options }: CommandInput, context: CommandContext): Promise<number> {
  const url = parseUrl(options.url)
  const account = options.account === undefined ? undefined : parseAccountName(options.account)
  const key = await readKey(options['key-file'], context)
  const [sdk, { serveStdio, StdioServerTransport }] = await loadPackage()
  const packageFile = await readFile(join(import.meta.dirname, '../../../package.json'), 'utf8')
  const { version } = JSON.parse(packageFile) as { version: string }
  const service = createServiceCaller(url, key, account)
  const { stdin, stdout, stderr, signal } = context
  const handle = serveStdio(
    () => {
      const server = new sdk.Server({ name: 'waybill', version }, { capabilities: { tools: {} }, instructions })
      server.setRequestHandler('tools/list', async (_, { mcpReq }) => ({
        tools: await listTools(service, mcpReq.signal),
      }))
      server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => answer(service, params, mcpReq.signal))
      return server
    },
    { transport: new StdioServerTransport(stdin, stdout), onerror: ({ message }) => stderr.write(`${message}\n`) },
  )
  stderr.write(`models may read ${url}\n`)
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
async function loadPackage() {
  try {
    return await Promise.all([import('@modelcontextprotocol/server'), import('@modelcontextprotocol/server/stdio')])
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    const message = 'the package @modelcontextprotocol/server is not installed: run npm ci with optional packages'
    throw Object.assign(new Error(message), { isNotInstalled: true })
  }
}

/** @throws UsageError */
function parseUrl(text = ''): string {
  const url = URL.parse(text)
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  throw new UsageError('--url is not where a service answers: use https://HOST or http://HOST:PORT, without a user')
}

/** @throws UsageError, which does not say what was read */
async function readKey(file: string | undefined, { environment, workingFolder }: CommandContext): Promise<string> {
  const given = environment[KEY_VARIABLE]
  if ((file === undefined) === (given === undefined)) throw new UsageError(`give --key-file or ${KEY_VARIABLE}`)
  const text = file === undefined ? given : await readFile(resolve(workingFolder, file), 'utf8').catch(() => undefined)
  if (text === undefined) throw new UsageError(`--key-file ${file} cannot be read`)
  const key = text.trim()
  if (/^[\x21-\x7e]{1,256}$/.test(key)) return key
  throw new UsageError(`${file === undefined ? KEY_VARIABLE : '--key-file'} holds no API key`)
}
