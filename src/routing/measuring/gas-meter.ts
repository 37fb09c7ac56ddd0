import type { Address } from '../../domain/address.ts'
import type { ChainConfig } from '../../domain/chains-file.ts'
import { type JsonRpc, type RpcAnswer, type RpcCall, RpcFailure } from '../json-rpc.ts'
import { decodeAggregate3, encodeAggregate3, readBlockTimestamp, uintAt } from '../multicall.ts'
import { decodeEstimates, encodeEstimates, OVERRIDES_CONTROL, takesOverrides } from './estimates.ts'
import type { GasAnswer, GasQuestion } from './question.ts'
import { decodeSimulation, EMPTY_SIMULATION, encodeSimulation, isUnknownMethod } from './simulation.ts'
import { decodeSlotSearch, encodeSlotSearch, type TokenSlots } from './token-slots.ts'

/** Measures what transactions take, through one URL. It remembers what its node can do. */
export interface GasMeter {
  /**
   * Measures all transactions in one HTTP request, by simulation where the node has it, else by estimates. Until it is known which, both
   * go in the one request; one more is needed only where a node that simulates fails to do so this time.
   *
   * @returns nothing measured where the node is behind the block of the quote, so that its answer says nothing
   * @throws RpcFailure where it cannot be reached; the signal's reason when it fires
   */
  measure(question: GasQuestion, signal: AbortSignal): Promise<GasAnswer>
  /**
   * Finds out what the node can do and, where it does not simulate, where the chain's tokens keep balances and allowances. Never throws for
   * what the node answers.
   *
   * @throws RpcFailure where it cannot be reached; the signal's reason when it fires
   */
  learn(signal: AbortSignal): Promise<void>
  /** 0 where it is known to simulate, 1 while it is not known, 2 where it only estimates. */
  rank(): number
}

export interface GasMeterOptions {
  readonly chain: Pick<ChainConfig, 'multicall' | 'tokens'>
  readonly rpc: JsonRpc
  /** Where the chain's tokens keep what, as far as any of its nodes showed; shared by the chain's URLs. */
  readonly slots: Map<Address, TokenSlots>
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** What a node can do; undefined while it is not known. */
interface Abilities {
  simulates: boolean | undefined
  /** Takes changes of state with estimates. */
  overrides: boolean | undefined
  isSearched: boolean
  learntAtMs: number
}

/** After so long it is asked anew what a node can do: nodes are replaced and brought up to date. */
const FORGOTTEN_AFTER_MS = 60 * 60_000

/** Likewise where a node failed at what it was asked first, which may have been the method or just then. */
const SUSPECTED_FOR_MS = 60_000

/** A search that nobody waits for takes this long at most. */
const SEARCH_TIMEOUT_MS = 10_000

/** Makes the meter of a URL. */
export function createGasMeter({ chain, rpc, slots, clock }: GasMeterOptions): GasMeter {
  let abilities = unknown(clock())
  const timestampRead = [readBlockTimestamp(chain.multicall)]
  const timestampCall: RpcCall = {
    method: 'eth_call',
    params: `[{"to":"${chain.multicall}","data":"${encodeAggregate3(timestampRead)}"},"latest"]`,
  }

  function known(): Abilities {
    if (clock() - abilities.learntAtMs > FORGOTTEN_AFTER_MS) abilities = unknown(clock())
    return abilities
  }

  /** @returns undefined where only a simulation was asked for, and it failed */
  async function measureBy(
    question: GasQuestion,
    { simulate, estimate }: { simulate: boolean; estimate: boolean },
    signal: AbortSignal,
  ): Promise<GasAnswer | undefined> {
    const { overrides } = known()
    const places = estimate
      ? encodeEstimates(question, overrides === false ? undefined : (token) => slots.get(token))
      : []
    const simulation = simulate ? encodeSimulation(question) : undefined
    const control = estimate && overrides === undefined ? OVERRIDES_CONTROL : undefined
    const answers = await askAll(rpc, [timestampCall, simulation, control, ...places], signal)
    const [timestamp, simulated, controlled, ...estimated] = answers
    noteSimulation(simulated)
    noteOverrides(controlled)
    if (isBehind(timestamp, question)) return nothingOf(question)
    const bySimulation = simulated && 'result' in simulated ? decodeSimulation(simulated.result, question) : undefined
    if (bySimulation !== undefined || !estimate) return bySimulation
    // Without changes of state, those after the first were asked on what is not so yet.
    const isTrue = (place: number) => place === 0 || abilities.overrides === true
    return decodeEstimates(estimated.map((answer, place) => (isTrue(place) ? answer : undefined)))
  }

  async function measureAsKnown(question: GasQuestion, signal: AbortSignal): Promise<GasAnswer> {
    const { simulates } = known()
    if (simulates !== false) {
      const isKnown = simulates !== undefined
      try {
        const answer = await measureBy(question, { simulate: true, estimate: !isKnown }, signal)
        if (answer !== undefined) return answer
      } catch (error) {
        if (isKnown || !(error instanceof RpcFailure)) throw error
        // Some gateways refuse all calls of a batch for a method that they do not know.
        abilities = { ...abilities, simulates: false, learntAtMs: clock() - FORGOTTEN_AFTER_MS + SUSPECTED_FOR_MS }
      }
    }
    return (await measureBy(question, { simulate: false, estimate: true }, signal)) ?? nothingOf(question)
  }

  function noteSimulation(answer: RpcAnswer | undefined): void {
    if (answer === undefined) return
    if ('result' in answer) abilities.simulates = true
    else if (answer.failure.refusal && isUnknownMethod(answer.failure.refusal)) abilities.simulates = false
  }

  function noteOverrides(answer: RpcAnswer | undefined): void {
    abilities.overrides ??= takesOverrides(answer)
  }

  async function search(signal: AbortSignal): Promise<void> {
    const { simulates, overrides, isSearched } = abilities
    if (simulates !== false || overrides !== true || isSearched) return
    abilities.isSearched = true
    try {
      for (const { address } of chain.tokens) {
        if (slots.has(address)) continue
        const [balance, allowance] = await rpc.callAll(encodeSlotSearch(address), true, signal)
        const found = decodeSlotSearch(resultOf(balance), resultOf(allowance))
        if (found !== undefined) slots.set(address, found)
      }
    } catch (error) {
      abilities.isSearched = false
      throw error
    }
  }

  return {
    rank: () => ({ true: 0, undefined: 1, false: 2 })[`${known().simulates}`],
    async measure(question, signal) {
      const answer = await measureAsKnown(question, signal)
      // The next route to be taken need not do without.
      search(AbortSignal.timeout(SEARCH_TIMEOUT_MS)).catch(() => {
        // It is looked for again then.
      })
      return answer
    },
    async learn(signal) {
      const [simulated, controlled] = await rpc.callAll([EMPTY_SIMULATION, OVERRIDES_CONTROL], true, signal)
      noteSimulation(simulated)
      noteOverrides(controlled)
      await search(signal)
    },
  }
}

function nothingOf({ calls }: GasQuestion): GasAnswer {
  return { steps: calls.map(() => undefined) }
}

function unknown(nowMs: number): Abilities {
  return { simulates: undefined, overrides: undefined, isSearched: false, learntAtMs: nowMs }
}

/** Makes those calls that there are, in one HTTP request. @returns in their order, undefined for each that there is not */
async function askAll(
  rpc: JsonRpc,
  calls: readonly (RpcCall | undefined)[],
  signal: AbortSignal,
): Promise<readonly (RpcAnswer | undefined)[]> {
  const present = calls.filter((call) => call !== undefined)
  const answers = (await rpc.callAll(present, true, signal)).values()
  return calls.map((call) => (call === undefined ? undefined : answers.next().value))
}

function isBehind(timestamp: RpcAnswer | undefined, { quotedAtSec }: GasQuestion): boolean {
  const result = resultOf(timestamp)
  if (typeof result !== 'string') return true
  try {
    const [digits = ''] = decodeAggregate3(result, 1)
    return Number(uintAt(digits, 0) ?? 0n) < quotedAtSec
  } catch (error) {
    if (error instanceof RangeError) return true
    throw error
  }
}

function resultOf(answer: RpcAnswer | undefined): unknown {
  return answer !== undefined && 'result' in answer ? answer.result : undefined
}
