import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { isLogDue, type Logger } from '../../domain/logger.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import type { NodePolicy } from '../../nodes/node-policy.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { createRpcNode } from '../../nodes/rpc-node.ts'
import { startTimeLimit } from '../../nodes/time-limit.ts'
import { createGasMeter } from '../gas/gas-meter.ts'
import type { GasQuestion } from '../gas/steps.ts'
import type { TokenSlots } from '../gas/token-slots.ts'
import { createChainSource } from './chain-source.ts'
import { type ChainSources, createChainSources } from './chain-sources.ts'
import { createScanReader } from './scan-reader.ts'
import { createSharedScans, type SharedScans } from './shared-scans.ts'
import { type ChainState, createUsualReads } from './wallet-state.ts'

export interface ScanOptions {
  /** Fires when the caller hangs up; the scan then throws its reason. */
  readonly signal: AbortSignal
  /** A chain without an answer by then is CHAIN_UNREACHABLE. */
  readonly timeoutMs: number
}

/** A scan of several chains that is under way. */
export interface RunningScan extends Disposable {
  /** By the chain's name, its state or why there is none. Each settles by itself, and rejects only with the reason of the caller's signal. */
  readonly outcomes: ReadonlyMap<string, Promise<ChainState | Explanation>>
  /** Fires when the time is over or the caller hangs up. */
  readonly signal: AbortSignal
}

/** Scans several chains at once. */
export type Scanner = ReturnType<typeof createScanner>

interface ScannerOptions {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly clock: () => number
  readonly logger: Logger
  /** The time for one URL, and for all URLs of a chain together. */
  readonly chainTimeoutMs: number
  /** What the process knows of its nodes' limits. */
  readonly limits: NodeLimits
}

/** Makes the scanner of the configured chains. */
export function createScanner(options: ScannerOptions) {
  const { chains, tokens, logger, clock, chainTimeoutMs } = options
  const warnedAtMs = new Map<string, number>()
  const sources = new Map(chains.configured.map((chain) => [chain.name, createSources(chain, options)]))
  const scans = new Map([...sources].map(([name, ofChain]) => [name, createSharedScans(ofChain)]))

  /** A chain that is down fails every call, so the log warns of it once a minute. */
  function report(chain: string, { reason, message }: Explanation) {
    const isDue = isLogDue(warnedAtMs.get(chain + reason), clock())
    if (isDue) warnedAtMs.set(chain + reason, clock())
    logger[isDue ? 'warn' : 'debug']({ chain, reason }, message)
  }

  /**
   * Scans each chain once, by one HTTP request a chain. A chain that is down, slow or misreports never fails the others.
   *
   * @param readsByChain - by the chain's name, what to read beside balances and prices
   * @throws the reason of the caller's signal when it has fired already
   */
  function scan(
    wallet: Address,
    readsByChain: ReadonlyMap<string, readonly ContractRead[]>,
    { signal, timeoutMs }: ScanOptions,
  ): RunningScan {
    signal.throwIfAborted()
    const limit = startTimeLimit(timeoutMs, signal)
    const scanChain = async (name: string, reads: readonly ContractRead[]) => {
      try {
        return await (scans.get(name) as SharedScans).scan({ wallet, reads }, timeoutMs, limit.signal)
      } catch (error) {
        signal.throwIfAborted()
        const cause = limit.isOver() ? new RpcError('TIMEOUT', `nothing came within ${timeoutMs} ms`) : error
        const failure = explainFailure(name, cause, (sources.get(name) as ChainSources).againInMs())
        report(name, failure)
        return failure
      }
    }
    const outcomes = new Map([...readsByChain].map(([name, reads]) => [name, scanChain(name, reads)]))
    // Rejections reach whoever awaits them; those that nobody awaits must not count as unhandled.
    for (const outcome of outcomes.values()) outcome.catch(() => {})
    return { outcomes, signal: limit.signal, [Symbol.dispose]: limit[Symbol.dispose] }
  }

  /** Reads all feeds twice: the second time also the rounds before those of the first. */
  async function learnRounds(signal: AbortSignal): Promise<void> {
    const noReads = new Map(chains.configured.map(({ name }) => [name, []]))
    for (let time = 0; time < 2; time++) {
      using running = scan(ZERO_ADDRESS, noReads, { signal, timeoutMs: chainTimeoutMs })
      for (const [name, outcome] of running.outcomes) {
        const scanned = await outcome
        if ('priceOf' in scanned) for (const token of tokens.ofChain(name)) scanned.priceOf(token)
      }
    }
  }

  return {
    scan,
    /**
     * Measures the gas of transactions on a chain, by one HTTP request once it is known how its first node does it.
     *
     * @param chain - the name of a configured chain
     * @returns undefined where it could not be measured in time
     * @throws the reason of the caller's signal when it fires
     */
    async measureGas(chain: string, question: GasQuestion, { signal, timeoutMs }: ScanOptions) {
      return sources.get(chain)?.measure(question, timeoutMs, signal)
    },
    /**
     * Finds out how the nodes of all chains measure gas, and which rounds their feeds gave last, so that the first payer has all of it. Never
     * rejects; ends early when the signal fires.
     */
    async learnNodes(signal: AbortSignal): Promise<void> {
      const ends = await Promise.allSettled([
        learnRounds(signal),
        ...[...sources.values()].map((each) => each.learn(signal)),
      ])
      for (const end of ends) {
        if (end.status !== 'rejected' || signal.aborted) continue
        logger.error({ error: end.reason }, 'what nodes can do could not be found out')
      }
    },
  }
}

/** After this part of the time a URL is slow, and the next one is asked as well. */
const SOFT_PART = 1 / 4

/** Answers are small: the longest part is the code of a contract wallet, below 100 kB. The caller's signal holds the time. */
export const SCAN_POLICY: NodePolicy = {
  maxAnswerBytes: 1 << 20,
  maxParallelCalls: Number.POSITIVE_INFINITY,
  isBulk: false,
  waitsForSlots: false,
  maxWaitMs: 1_500,
}

function createSources(chain: ChainConfig, options: ScannerOptions): ChainSources {
  const { tokens, clock, logger, chainTimeoutMs, limits } = options
  const slots = new Map<Address, TokenSlots>()
  const usual = createUsualReads(chain, tokens.ofChain(chain.name))
  const times = { timeoutMs: chainTimeoutMs, softMs: Math.ceil(chainTimeoutMs * SOFT_PART), clock }
  const sources = chain.rpcUrls.map((url) => {
    const ofUrl = limits.of(url)
    const node = createRpcNode(url, SCAN_POLICY, ofUrl)
    return createChainSource({
      readChain: createScanReader({ chain, node, reads: usual, clock }),
      meter: createGasMeter({ chain, node, slots, clock }),
      name: { chain: chain.name, node: node.host },
      limits: ofUrl,
      logger,
      ...times,
    })
  })
  return createChainSources({ chain, sources, ...times })
}

function explainFailure(chain: string, error: unknown, againInMs: number): Explanation {
  if (!(error instanceof RpcError)) throw error
  const reason = isSilence(error) ? 'CHAIN_UNREACHABLE' : 'CHAIN_INCONSISTENT'
  return explain(reason, { chain, detail: error.detail, seconds: Math.ceil(againInMs / 1_000) })
}

/** Whether no node answered at all, not even with an error of JSON-RPC. */
function isSilence({ kind, refusal }: RpcError): boolean {
  return refusal === undefined && (kind === 'UNREACHABLE' || kind === 'TIMEOUT' || kind === 'RATE_LIMITED')
}
