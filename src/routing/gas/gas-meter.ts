import type { ChainConfig } from '../../chains/chains-file.ts'
import { readBlockTimestamp } from '../../contracts/contract-reads.ts'
import { decodeAggregate3, encodeAggregate3 } from '../../contracts/multicall.ts'
import { revertReason } from '../../contracts/returned-texts.ts'
import { encodeUint, readQuantity, toQuantity, uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { type RpcAnswer, type RpcCall, resultIn } from '../../nodes/json-rpc.ts'
import { isRevert, isUnknownMethod, type RpcRefusal } from '../../nodes/rpc-error.ts'
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

/** After this time the node is asked again what it can do: nodes are replaced and upgraded. */
const KNOWN_FOR_MS = 60 * 60_000

/** The same where it has neither simulated nor said that it does not know the method. */
const SUSPECTED_FOR_MS = 60_000

/** What a node can do. */
interface Abilities {
  readonly simulates: boolean
  /** Whether it takes state overrides with estimates. */
  readonly overrides: boolean
  readonly untilMs: number
  /** Whether the storage places of the chain's tokens were searched. */
  isSearched: boolean
}

interface Meter extends Pick<GasMeterOptions, 'chain' | 'node' | 'slots'> {
  /** Reads the time of the newest block. */
  readonly timestampCall: RpcCall
}

/** Makes the meter of a URL. */
export function createGasMeter({ clock, ...options }: GasMeterOptions) {
  const meter: Meter = { ...options, timestampCall: timestampCallOf(options.chain.multicall) }
  let abilities: Abilities | undefined
  const known = () => (abilities !== undefined && clock() <= abilities.untilMs ? abilities : undefined)

  async function findOut(signal: AbortSignal): Promise<Abilities> {
    // Each by itself: some gateways refuse a whole batch for one method that they do not offer.
    const asked = [EMPTY_SIMULATION, OVERRIDES_CONTROL].map((call) => meter.node.ask([call], { signal }))
    const [simulated, controlled] = (await Promise.all(asked)).flat()
    const isSure = simulated?.ok === true || isRefusedBy(isUnknownMethod, simulated)
    abilities = {
      simulates: simulated?.ok === true,
      overrides: isRefusedBy(isRevert, controlled),
      untilMs: clock() + (isSure ? KNOWN_FOR_MS : SUSPECTED_FOR_MS),
      isSearched: false,
    }
    return abilities
  }

  return {
    /** 0 where it is known to simulate, 1 while it is not known, 2 where it only estimates. */
    rank: () => ({ true: 0, undefined: 1, false: 2 })[`${known()?.simulates}`],

    /**
     * Measures all transactions in one HTTP request once it is known what the node can do: by simulation where it offers it, else by estimates.
     * A second request is needed where a node that simulates fails to do so this time.
     *
     * @returns nothing measured where the node is behind the block of the quote: its answer would mean nothing
     * @throws RpcError where the node cannot be reached; the signal's reason when it fires
     */
    async measure(question: GasQuestion, signal: AbortSignal): Promise<GasAnswer> {
      const found = known() ?? (await findOut(signal))
      const simulated = found.simulates ? await simulate(meter, question, signal) : undefined
      const answer = simulated ?? (await estimate(meter, question, found, signal))
      // The next route's later steps can be estimated only with the storage places known.
      searchSlots(meter, found, AbortSignal.timeout(SEARCH_TIMEOUT_MS)).catch(() => {
        // The next measurement searches again.
      })
      return answer
    },

    /**
     * Finds out what the node can do and, where it does not simulate, where the chain's tokens keep balances and allowances.
     *
     * @throws RpcError where the node cannot be reached; the signal's reason when it fires
     */
    learn: async (signal: AbortSignal): Promise<void> => searchSlots(meter, await findOut(signal), signal),
  }
}

function timestampCallOf(multicall: Address): RpcCall {
  const data = encodeAggregate3([readBlockTimestamp(multicall)])
  return { method: 'eth_call', params: `[{"to":"${multicall}","data":"${data}"},"latest"]` }
}

/** @returns undefined where it failed */
async function simulate({ node, timestampCall }: Meter, question: GasQuestion, signal: AbortSignal) {
  const [timestamp, simulated] = await node.ask([timestampCall, encodeSimulation(question)], { signal })
  if (isBehind(timestamp, question)) return nothingMeasured(question)
  return simulated?.ok ? decodeSimulation(simulated.result, question) : undefined
}

/** A node that ignores state overrides would estimate later steps as if the first had not been mined. */
async function estimate(
  { node, slots, timestampCall }: Meter,
  question: GasQuestion,
  { overrides }: Abilities,
  signal: AbortSignal,
): Promise<GasAnswer> {
  const estimates = encodeEstimates(question, (token) => (overrides ? slots.get(token) : undefined))
  const [timestamp, ...estimated] = await node.ask([timestampCall, ...estimates], { signal })
  return isBehind(timestamp, question) ? nothingMeasured(question) : decodeEstimates(estimated, question)
}

/** Finds where the chain's tokens keep balances and allowances, for a node that only estimates; once until its abilities are found out again. */
async function searchSlots({ chain, node, slots }: Meter, found: Abilities, signal: AbortSignal): Promise<void> {
  if (found.simulates || !found.overrides || found.isSearched) return
  found.isSearched = true
  try {
    for (const { address } of chain.tokens) {
      if (slots.has(address)) continue
      const [balance, allowance] = await node.ask(encodeSlotSearch(address), { signal })
      const places = decodeSlotSearch(resultIn(balance), resultIn(allowance))
      if (places !== undefined) slots.set(address, places)
    }
  } catch (error) {
    found.isSearched = false
    throw error
  }
}

function nothingMeasured({ calls }: GasQuestion): GasAnswer {
  return { steps: calls.map(() => undefined) }
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

/*
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

/** Encodes an estimate of each transaction, up to the first whose predecessors' effects cannot be written. */
function encodeEstimates({ wallet, calls }: GasQuestion, slotsOf: SlotsOf): readonly RpcCall[] {
  const encoded = calls.map((call, place) => {
    const before = calls.slice(0, place).flatMap(({ effect }) => effect ?? [])
    const overrides = overridesFor(before, wallet, slotsOf)
    return overrides && encodeEstimate(wallet, call, overrides)
  })
  return encoded.filter((call) => call !== undefined)
}

/** An account without code, to which the override gives code that reverts: a node that answers with an estimate has ignored the override. */
const CONTROL = '0x5a17feed5a17feed5a17feed5a17feed5a17feed'

/** An estimate that fails only where the node takes state overrides. */
const OVERRIDES_CONTROL: RpcCall = {
  method: 'eth_estimateGas',
  params: JSON.stringify([{ from: CONTROL, to: CONTROL }, 'latest', { [CONTROL]: { code: '0x60006000fd' } }]),
  isOptional: true,
}

function isRefusedBy(isSuch: (refusal: RpcRefusal) => boolean, answer: RpcAnswer | undefined): boolean {
  return answer?.ok === false && answer.error.refusal !== undefined && isSuch(answer.error.refusal)
}

/**
 * Decodes the estimates. An implausible one counts as not measured.
 *
 * @param answers - in the order of the calls; those of later calls may be missing
 */
function decodeEstimates(answers: readonly RpcAnswer[], { calls }: GasQuestion): GasAnswer {
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
