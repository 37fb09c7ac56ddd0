/**
 * Starts the demo's four chains, from their state on disk or from genesis, and describes them like a chains file.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Logger } from '../../src/domain/logger.ts'
import { type Anvil, type AnvilExit, type AnvilOptions, AnvilStartError, startAnvil } from './anvil.ts'
import { type ChainClient, createChainClient, deployContracts } from './chain-client.ts'
import { describeChain } from './chain-config.ts'
import { DEMO_CHAINS, type DemoChainSpec } from './chain-specs.ts'
import { type Deployed, planDeployment } from './deployment.ts'
import { mintsForPeople, supplyPeople } from './funding.ts'
import { type LocalServer, type Refusal, refuseForeign, serveLocally } from './local-server.ts'
import { DEMO_ACCOUNTS, DEMO_MNEMONIC, type DemoPeople, readPeople } from './people.ts'
import { type ChainRecord, type ChainStateFolder, LAYOUT_VERSION, openStateFolder } from './state-folder.ts'

const DAY_SEC = 86_400
/** The payments on the chains reach about two days back, a weekend in a quiet month somewhat more. */
export const GENESIS_DAYS_AGO = 7
/** The node writes its state only at its end; while it runs, the clock saves at blocks that it knows. */
const NEVER_SEC = 100_000_000
/** Enough for the history, whose prices the service reads at each payment's block. */
const KEPT_STATES = 256

export interface DemoChain {
  spec: DemoChainSpec
  client: ChainClient
  deployed: Deployed
  people: DemoPeople
  anvil: Anvil
  /** Passes calls of other processes to the node. */
  gateway: LocalServer
  state: ChainStateFolder
  /** Whether it has contracts and funds but no history yet. */
  fresh: boolean
}

export type DemoNetwork = Awaited<ReturnType<typeof startNetwork>>

/**
 * Starts every chain of the demo, each on a port of loopback: its last one if that is free, so that a wallet keeps its network.
 *
 * @param folder - holds a folder with the state of each chain
 * @throws AnvilStartError when a node cannot run here; Error when a chain's id is that of a real chain
 */
export async function startNetwork(context: StartContext, specs: readonly DemoChainSpec[] = DEMO_CHAINS) {
  const started = await Promise.allSettled(specs.map((spec) => startChain(spec, context)))
  const chains = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failure = started.find((result) => result.status === 'rejected')
  const stop = async (): Promise<void> => {
    await Promise.all(chains.flatMap((chain) => [chain.gateway.stop(), chain.anvil.stop()]))
  }
  if (failure) {
    await stop()
    throw failure.reason
  }
  return {
    chains,
    configs: chains.map((chain) => describeChain(chain.spec, chain.anvil.rpcUrl, chain.deployed)),
    /** Settles when a node ended unexpectedly. */
    crashed: firstCrash(chains),
    stop,
  }
}

function firstCrash(chains: readonly DemoChain[]): Promise<{ chain: string; exit: AnvilExit }> {
  return new Promise((resolve) => {
    for (const chain of chains) {
      void chain.anvil.exited.then((exit) => {
        if (!exit.expected) resolve({ chain: chain.spec.name, exit })
      })
    }
  })
}

interface StartContext {
  folder: string
  logger: Logger
  now: () => Date
}

async function startChain(spec: DemoChainSpec, context: StartContext): Promise<DemoChain> {
  const state = await openStateFolder(join(context.folder, spec.name))
  const record = await state.open()
  const continued = record && (await continueChain(spec, state, record, context.logger))
  if (continued) return { ...(await openGateway(continued)), fresh: false }
  await state.clear()
  return { ...(await openGateway(await makeChain(spec, state, context.now()))), fresh: true }
}

type RunningChain = Omit<DemoChain, 'gateway' | 'fresh'>

async function openGateway(chain: RunningChain): Promise<RunningChain & Pick<DemoChain, 'gateway'>> {
  const gateway = await startNodeGateway(chain.anvil.rpcUrl, await chain.state.lastPort())
  await chain.state.keepPort(Number(new URL(gateway.url).port))
  return { ...chain, gateway }
}

async function continueChain(
  spec: DemoChainSpec,
  state: ChainStateFolder,
  { layoutVersion, genesisHash, genesisTimeSec }: ChainRecord,
  logger: Logger,
): Promise<RunningChain | undefined> {
  if (layoutVersion !== LAYOUT_VERSION) {
    logger.warn({ chain: spec.name }, 'a demo chain was created by another version of the demo: it is created again')
    return undefined
  }
  let anvil: Anvil
  try {
    anvil = await startAnvil({ ...anvilOptions(spec, state), genesisTimeSec, loadFile: state.stateFile })
  } catch (error) {
    if (!(error instanceof AnvilStartError) || !error.stateUnreadable) throw error
    logger.warn(
      { chain: spec.name, err: error },
      'the state of a demo chain cannot be read: the chain is created again',
    )
    return undefined
  }
  const client = createChainClient(anvil.rpc)
  if ((await readGenesis(client)).hash !== genesisHash) {
    logger.warn({ chain: spec.name }, 'a demo chain has another genesis block than its record: it is created again')
    await anvil.stop()
    return undefined
  }
  const people = await readPeople(anvil.rpc)
  const { deployed } = planDeployment(spec, people, 0)
  return { spec, client, deployed, people, anvil, state }
}

async function makeChain(spec: DemoChainSpec, state: ChainStateFolder, now: Date): Promise<RunningChain> {
  const genesisTimeSec = Math.floor(now.getTime() / 1000) - GENESIS_DAYS_AGO * DAY_SEC
  const anvil = await startAnvil({ ...anvilOptions(spec, state), genesisTimeSec })
  const client = createChainClient(anvil.rpc)
  const people = await readPeople(anvil.rpc)
  const plan = planDeployment(spec, people, genesisTimeSec)
  const deployed = await deployContracts(client, plan, {
    deployer: people.deployer,
    calls: mintsForPeople(spec, plan.deployed, people),
    block: { baseFeePerGas: spec.baseFeePerGas },
  })
  await supplyPeople(client, spec, deployed, people)
  return { spec, client, deployed, people, anvil, state }
}

export async function readGenesis(client: ChainClient): Promise<{ hash: string; timestampSec: number }> {
  const block = await client.rpc.call<{ hash: string; timestamp: string }>('eth_getBlockByNumber', ['0x0', false])
  return { hash: block.hash, timestampSec: Number(block.timestamp) }
}

function anvilOptions(spec: DemoChainSpec, state: ChainStateFolder): AnvilOptions {
  return {
    chainId: spec.chainId,
    host: pickHiddenHost(),
    mnemonic: DEMO_MNEMONIC,
    accounts: DEMO_ACCOUNTS,
    automine: false,
    keptStates: KEPT_STATES,
    state: { dumpFile: state.exitFile, dumpIntervalSec: NEVER_SEC, lockFile: state.lockFile },
  }
}

/**
 * The gateway before a demo node. The node itself accepts any Host and Origin, so it listens on a loopback address that nobody can guess; the
 * gateway passes on the calls of allowed callers.
 */
/** One of 16 million loopback addresses. A page would need years to try them with all ports. */
export function pickHiddenHost(): string {
  return ['127', ...Array.from({ length: 3 }, () => String(randomInt(1, 255)))].join('.')
}

/**
 * Passes JSON-RPC on unchanged, single calls and batches of any size, from a port of 127.0.0.1.
 *
 * @param nodeUrl - URL of the node
 * @param preferredPort - taken if it is free
 */
export async function startNodeGateway(nodeUrl: string, preferredPort?: number): Promise<LocalServer> {
  const agent = new Agent({ keepAlive: true })
  const forward: RequestListener = (call, answer) => {
    const refusal = refusalOf(call)
    if (refusal !== undefined) return sendRefusal(answer, refusal)
    passOn(call, answer, { nodeUrl, agent }).catch((error: Error) => {
      if (answer.headersSent) answer.destroy()
      else sendRefusal(answer, { status: 502, message: `the node of the demo did not answer: ${error.message}` })
    })
  }
  // A node may take long to answer, and only programs of this machine call it.
  const { url, stop } = await serveLocally(forward, { requestTimeout: 0 }, preferredPort)
  return {
    url,
    async stop() {
      const stopped = stop()
      agent.destroy()
      await stopped
    },
  }
}

function refusalOf(call: IncomingMessage): Refusal | undefined {
  const refusal = refuseForeign(call)
  if (refusal !== undefined || call.method === 'POST') return refusal
  return { status: 405, message: 'JSON-RPC is called by POST' }
}

/** As a JSON-RPC error, which clients can read. */
function sendRefusal(answer: ServerResponse, { status, message }: Refusal): void {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_600, message } })
  const allow = status === 405 ? { allow: 'POST' } : {}
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), connection: 'close' }
  answer.writeHead(status, { ...headers, ...allow }).end(body)
}

async function passOn(
  call: IncomingMessage,
  answer: ServerResponse,
  { nodeUrl, agent }: { nodeUrl: string; agent: Agent },
): Promise<void> {
  const { host: _, ...headers } = call.headers
  const passed = request(nodeUrl, { method: 'POST', agent, headers })
  answer.once('close', () => {
    if (!answer.writableFinished) passed.destroy()
  })
  const answered = once(passed, 'response') as Promise<[IncomingMessage]>
  const [[response]] = await Promise.all([answered, pipeline(call, passed)])
  answer.writeHead(response.statusCode ?? 502, response.headers)
  await pipeline(response, answer)
}
