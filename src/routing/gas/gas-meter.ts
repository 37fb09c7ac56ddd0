import type { ChainConfig } from '../../chains/chains-file.ts'
import { readBlockTimestamp } from '../../contracts/contract-reads.ts'
import { decodeAggregate3, encodeAggregate3 } from '../../contracts/multicall.ts'
import { revertReason } from '../../contracts/returned-texts.ts'
import { encodeUint, readQuantity, toQuantity, uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { type RpcAnswer, type RpcCall, resultIn } from '../../nodes/json-rpc.ts'
import { isRevert, isUnknownMethod, RpcError } from '../../nodes/rpc-error.ts'
import type { RpcNode } from '../../nodes/rpc-node.ts'
import { decodeSimulation, EMPTY_SIMULATION, encodeSimulation } from './simulation.ts'
import {
  type GasAnswer,
  type GasCall,
  type GasQuestion,
  isPlausibleGas,
  type StepEffect,
  type StepGas,
} from './steps.ts'
import { decodeSlotSearch, encodeSlotSearch, type TokenSlots } from './token-slots.ts'

/** Measures the gas of transactions through one URL. It remembers what its node can do. */
export type GasMeter = ReturnType<typeof createGasMeter>

interface GasMeterOptions {
  readonly chain: Pick<ChainConfig, 'multicall' | 'tokens'>
  readonly node: RpcNode
  /** Where the chain's tokens keep balances and allowances, as far as any of its nodes showed; shared by the chain's URLs. */
  readonly slots: Map<Address, TokenSlots>
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** The time for a search of storage places that nobody waits for. */
const SEARCH_TIMEOUT_MS = 10_000

interface Meter extends Pick<GasMeterOptions, 'chain' | 'node' | 'slots'> {
  readonly abilities: NodeAbilities
  /** Reads the time of the newest block. */
  readonly timestampCall: RpcCall
}

/** Makes the meter of a URL. */
export function createGasMeter({ clock, ...options }: GasMeterOptions) {
  const abilities = createNodeAbilities(clock)
  const meter: Meter = { ...options, abilities, timestampCall: timestampCallOf(options.chain.multicall) }
  return {
    /** 0 where it is known to simulate, 1 while it is not known, 2 where it only estimates. */
    rank: () => ({ true: 0, undefined: 1, false: 2 })[`${abilities.known().simulates}`],
    /**
     * Measures all transactions in one HTTP request: by simulation where the node offers it, else by estimates. Until it is known which, the
     * request holds both; a second request is needed only where a node that simulates fails to do so this time.
     *
     * @returns nothing measured where the node is behind the block of the quote: its answer would mean nothing
     * @throws RpcError where the node cannot be reached; the signal's reason when it fires
     */
    async measure(question: GasQuestion, signal: AbortSignal): Promise<GasAnswer> {
      const answer = await measureAsKnown(meter, question, signal)
      // The next route's later steps can be estimated only with the storage places known.
      searchSlots(meter, AbortSignal.timeout(SEARCH_TIMEOUT_MS)).catch(() => {
        // The next measurement searches again.
      })
      return answer
    },
    /**
     * Finds out what the node can do and, where it does not simulate, where the chain's tokens keep balances and allowances.
     *
     * @throws RpcError where the node cannot be reached; the signal's reason when it fires
     */
    async learn(signal: AbortSignal): Promise<void> {
      const [simulated, controlled] = await meter.node.ask([EMPTY_SIMULATION, OVERRIDES_CONTROL], { signal })
      abilities.noteSimulation(simulated)
      abilities.noteOverrides(controlled)
      await searchSlots(meter, signal)
    },
  }
}

function timestampCallOf(multicall: Address): RpcCall {
  const data = encodeAggregate3([readBlockTimestamp(multicall)])
  return { method: 'eth_call', params: `[{"to":"${multicall}","data":"${data}"},"latest"]` }
}

async function measureAsKnown(meter: Meter, question: GasQuestion, signal: AbortSignal): Promise<GasAnswer> {
  const { simulates } = meter.abilities.known()
  if (simulates !== false) {
    const isKnown = simulates !== undefined
    try {
      const answer = await measureBy(meter, question, { simulate: true, estimate: !isKnown }, signal)
      if (answer !== undefined) return answer
    } catch (error) {
      if (isKnown || !(error instanceof RpcError)) throw error
      // Some gateways refuse a whole batch for one method that they do not offer.
      meter.abilities.suspect()
    }
  }
  return (await measureBy(meter, question, { simulate: false, estimate: true }, signal)) ?? nothingMeasured(question)
}

/** @returns undefined where only a simulation was asked for, and it failed */
async function measureBy(
  { node, abilities, slots, timestampCall }: Meter,
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
  const answers = await askPresent(node, [timestampCall, simulation, control, ...places], signal)
  const [timestamp, simulated, controlled, ...estimated] = answers
  abilities.noteSimulation(simulated)
  abilities.noteOverrides(controlled)
  if (isBehind(timestamp, question)) return nothingMeasured(question)
  const bySimulation = simulated?.ok ? decodeSimulation(simulated.result, question) : undefined
  if (bySimulation !== undefined || !estimate) return bySimulation
  // A node that ignores state overrides estimates later steps as if the first had not been mined.
  const counts = (place: number) => place === 0 || abilities.known().overrides === true
  return decodeEstimates(
    estimated.map((answer, place) => (counts(place) ? answer : undefined)),
    question,
  )
}

/** Finds where the chain's tokens keep balances and allowances, for a node that only estimates; once until its abilities are forgotten. */
async function searchSlots({ chain, node, slots, abilities }: Meter, signal: AbortSignal): Promise<void> {
  const known = abilities.known()
  if (known.simulates !== false || known.overrides !== true || known.isSearched) return
  known.isSearched = true
  try {
    for (const { address } of chain.tokens) {
      if (slots.has(address)) continue
      const [balance, allowance] = await node.ask(encodeSlotSearch(address), { signal })
      const found = decodeSlotSearch(resultIn(balance), resultIn(allowance))
      if (found !== undefined) slots.set(address, found)
    }
  } catch (error) {
    known.isSearched = false
    throw error
  }
}

function nothingMeasured({ calls }: GasQuestion): GasAnswer {
  return { steps: calls.map(() => undefined) }
}

/** Makes the calls that are not undefined, in one HTTP request. @returns in their order, undefined in place of undefined */
async function askPresent(
  node: RpcNode,
  calls: readonly (RpcCall | undefined)[],
  signal: AbortSignal,
): Promise<readonly (RpcAnswer | undefined)[]> {
  const present = calls.filter((call) => call !== undefined)
  const answers = (await node.ask(present, { signal })).values()
  return calls.map((call) => (call === undefined ? undefined : answers.next().value))
}

function isBehind(timestamp: RpcAnswer | undefined, { quotedAtSec }: GasQuestion): boolean {
  const result = resultIn(timestamp)
  if (typeof result !== 'string') return true
  try {
    const [digits] = decodeAggregate3(result, 1)
    return Number(uintAt(digits, 0) ?? 0n) < quotedAtSec
  } catch (error) {
    if (error instanceof RangeError) return true
    throw error
  }
}

/** What a node can do; undefined while it is not known. */
interface Abilities {
  simulates?: boolean
  /** Takes state overrides with estimates. */
  overrides?: boolean | undefined
  /** Whether the storage places of the chain's tokens were searched. */
  isSearched?: boolean
}

/** Remembers from its answers what a node can do. */
type NodeAbilities = ReturnType<typeof createNodeAbilities>

/** After this time the node is asked again what it can do: nodes are replaced and upgraded. */
const FORGOTTEN_AFTER_MS = 60 * 60_000

const SUSPECTED_FOR_MS = 60_000

/** @param clock - milliseconds since 1970 */
export function createNodeAbilities(clock: () => number) {
  let abilities: Abilities = {}
  let forgetAtMs = clock() + FORGOTTEN_AFTER_MS

  function known(): Abilities {
    if (clock() <= forgetAtMs) return abilities
    abilities = {}
    forgetAtMs = clock() + FORGOTTEN_AFTER_MS
    return abilities
  }

  function suspectUnlessKnown(): void {
    if (known().simulates !== undefined) return
    abilities.simulates = false
    forgetAtMs = clock() + SUSPECTED_FOR_MS
  }

  return {
    /** What is known now; writing to it is remembered, until everything is forgotten. */
    known,
    noteSimulation(answer: RpcAnswer | undefined): void {
      if (answer === undefined) return
      if (answer.ok) known().simulates = true
      else if (answer.error.refusal === undefined) suspectUnlessKnown()
      else if (isUnknownMethod(answer.error.refusal)) known().simulates = false
    },
    noteOverrides(answer: RpcAnswer | undefined): void {
      known().overrides ??= takesOverrides(answer)
    },
    /**
     * The node failed at a question that held a simulation. Unless its ability is known, it counts as a node that does not simulate, for a minute.
     */
    suspect: suspectUnlessKnown,
  }
}

/**
 * The gas of each transaction by itself, for nodes that do not simulate several. The effects of earlier transactions are written into the
 * storage of their tokens by state overrides, where the node takes those and the storage places are known.
 */
/** Where a token keeps balances and allowances; undefined where that is not known. */
type SlotsOf = (token: Address) => TokenSlots | undefined

/** State overrides, by contract and storage place. */
type Overrides = Record<Address, { stateDiff: Record<string, string> }>

/** @returns undefined where a storage place is not known */
function overridesFor(effects: readonly StepEffect[], wallet: Address, slotsOf: SlotsOf): Overrides | undefined {
  const overrides: Overrides = {}
  for (const effect of effects) {
    const slots = slotsOf(effect.token)
    if (slots === undefined) return undefined
    const place = effect.kind === 'BALANCE' ? slots.balanceOf(wallet) : slots.allowanceOf(wallet, effect.spender)
    const ofToken = (overrides[effect.token] ??= { stateDiff: {} })
    ofToken.stateDiff[place] = `0x${encodeUint(effect.amount)}`
  }
  return overrides
}

function encodeEstimate(wallet: Address, { to, data, value }: GasCall, overrides: Overrides): RpcCall {
  const call = { from: wallet, to, data, value: toQuantity(value) }
  const further = Object.keys(overrides).length === 0 ? [] : ['latest', overrides]
  return { method: 'eth_estimateGas', params: JSON.stringify([call, ...further]), isOptional: true }
}

/**
 * Encodes an estimate of each transaction.
 *
 * @param slotsOf - undefined where the node takes no state overrides
 * @returns undefined in place of a transaction whose predecessors' effects cannot be written
 */
function encodeEstimates({ wallet, calls }: GasQuestion, slotsOf?: SlotsOf): readonly (RpcCall | undefined)[] {
  return calls.map((call, place) => {
    const before = calls.slice(0, place).flatMap(({ effect }) => effect ?? [])
    const overrides = place === 0 ? {} : slotsOf && overridesFor(before, wallet, slotsOf)
    return overrides && encodeEstimate(wallet, call, overrides)
  })
}

/** An account without code, to which the override gives code that reverts: a node that answers with an estimate has ignored the override. */
const CONTROL = '0x5a17feed5a17feed5a17feed5a17feed5a17feed'

/** An estimate that fails only where the node takes state overrides. */
const OVERRIDES_CONTROL: RpcCall = {
  method: 'eth_estimateGas',
  params: JSON.stringify([{ from: CONTROL, to: CONTROL }, 'latest', { [CONTROL]: { code: '0x60006000fd' } }]),
  isOptional: true,
}

/** Whether a node takes state overrides, by its answer to {@link OVERRIDES_CONTROL}; undefined where the answer does not show it. */
function takesOverrides(answer: RpcAnswer | undefined): boolean | undefined {
  if (answer === undefined) return undefined
  if (answer.ok) return false
  const { refusal } = answer.error
  return refusal && isRevert(refusal)
}

/**
 * Decodes the estimates. An implausible one counts as not measured.
 *
 * @param answers - in the order of the calls; undefined for one that was not made
 */
function decodeEstimates(
  answers: readonly (RpcAnswer | undefined)[],
  { calls }: Pick<GasQuestion, 'calls'>,
): GasAnswer {
  const steps: (StepGas | undefined)[] = []
  for (const place of calls.keys()) {
    const answer = answers[place]
    const refusal = answer?.ok === false ? answer.error.refusal : undefined
    if (refusal !== undefined && isRevert(refusal)) {
      return { reverted: { place, detail: revertReason(refusal.data, refusal.message) } }
    }
    const most = readQuantity(resultIn(answer))
    steps.push(most === undefined || !isPlausibleGas(most) ? undefined : { way: 'ESTIMATED', most })
  }
  return { steps }
}
