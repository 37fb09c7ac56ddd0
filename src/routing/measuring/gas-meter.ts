import type { ChainConfig } from '../../chains/chains-file.ts'
import { decodeAggregate3, encodeAggregate3, readBlockTimestamp, uintAt } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { type JsonRpc, type RpcAnswer, type RpcCall, RpcFailure } from '../../nodes/json-rpc.ts'
import { decodeEstimates, encodeEstimates, OVERRIDES_CONTROL } from './estimates.ts'
import { createNodeAbilities, type NodeAbilities } from './node-abilities.ts'
import type { GasAnswer, GasQuestion } from './question.ts'
import { decodeSimulation, EMPTY_SIMULATION, encodeSimulation } from './simulation.ts'
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

/** A search that nobody waits for takes this long at most. */
const SEARCH_TIMEOUT_MS = 10_000

/** What measuring through a URL needs. */
interface Node extends Pick<GasMeterOptions, 'chain' | 'rpc' | 'slots'> {
  readonly abilities: NodeAbilities
  /** Asks for the time of the newest block. */
  readonly timestampCall: RpcCall
}

/** Makes the meter of a URL. */
export function createGasMeter({ clock, ...options }: GasMeterOptions): GasMeter {
  const abilities = createNodeAbilities(clock)
  const node: Node = { ...options, abilities, timestampCall: timestampCallOf(options.chain.multicall) }
  return {
    rank: () => ({ true: 0, undefined: 1, false: 2 })[`${abilities.known().simulates}`],
    async measure(question, signal) {
      const answer = await measureAsKnown(node, question, signal)
      // So that the steps behind the first of the next route can be estimated as well.
      searchSlots(node, AbortSignal.timeout(SEARCH_TIMEOUT_MS)).catch(() => {
        // The next measurement searches again.
      })
      return answer
    },
    async learn(signal) {
      const [simulated, controlled] = await node.rpc.callAll([EMPTY_SIMULATION, OVERRIDES_CONTROL], true, signal)
      abilities.noteSimulation(simulated)
      abilities.noteOverrides(controlled)
      await searchSlots(node, signal)
    },
  }
}

function timestampCallOf(multicall: Address): RpcCall {
  const data = encodeAggregate3([readBlockTimestamp(multicall)])
  return { method: 'eth_call', params: `[{"to":"${multicall}","data":"${data}"},"latest"]` }
}

async function measureAsKnown(node: Node, question: GasQuestion, signal: AbortSignal): Promise<GasAnswer> {
  const { simulates } = node.abilities.known()
  if (simulates !== false) {
    const isKnown = simulates !== undefined
    try {
      const answer = await measureBy(node, question, { simulate: true, estimate: !isKnown }, signal)
      if (answer !== undefined) return answer
    } catch (error) {
      if (isKnown || !(error instanceof RpcFailure)) throw error
      // Some gateways refuse all calls of a batch for a method that they do not know.
      node.abilities.suspect()
    }
  }
  return (await measureBy(node, question, { simulate: false, estimate: true }, signal)) ?? nothingOf(question)
}

/** @returns undefined where only a simulation was asked for, and it failed */
async function measureBy(
  { rpc, abilities, slots, timestampCall }: Node,
  question: GasQuestion,
  { simulate, estimate }: { simulate: boolean; estimate: boolean },
  signal: AbortSignal,
): Promise<GasAnswer | undefined> {
  const { overrides } = abilities.known()
  const places = estimate
    ? encodeEstimates(question, overrides === false ? undefined : (token) => slots.get(token))
    : []
  const simulation = simulate ? encodeSimulation(question) : undefined
  const control = estimate && overrides === undefined ? OVERRIDES_CONTROL : undefined
  const answers = await askAll(rpc, [timestampCall, simulation, control, ...places], signal)
  const [timestamp, simulated, controlled, ...estimated] = answers
  abilities.noteSimulation(simulated)
  abilities.noteOverrides(controlled)
  if (isBehind(timestamp, question)) return nothingOf(question)
  const bySimulation = simulated && 'result' in simulated ? decodeSimulation(simulated.result, question) : undefined
  if (bySimulation !== undefined || !estimate) return bySimulation
  // Where the node leaves changes of state out, the steps after the first were estimated without what the steps before them do.
  const isTrue = (place: number) => place === 0 || abilities.known().overrides === true
  return decodeEstimates(
    estimated.map((answer, place) => (isTrue(place) ? answer : undefined)),
    question,
  )
}

/** Finds where the chain's tokens keep what, for a node that only estimates; once until its abilities are forgotten. */
async function searchSlots({ chain, rpc, slots, abilities }: Node, signal: AbortSignal): Promise<void> {
  const known = abilities.known()
  if (known.simulates !== false || known.overrides !== true || known.isSearched) return
  known.isSearched = true
  try {
    for (const { address } of chain.tokens) {
      if (slots.has(address)) continue
      const [balance, allowance] = await rpc.callAll(encodeSlotSearch(address), true, signal)
      const found = decodeSlotSearch(resultOf(balance), resultOf(allowance))
      if (found !== undefined) slots.set(address, found)
    }
  } catch (error) {
    known.isSearched = false
    throw error
  }
}

function nothingOf({ calls }: GasQuestion): GasAnswer {
  return { steps: calls.map(() => undefined) }
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
