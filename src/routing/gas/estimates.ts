/**
 * The gas of each transaction by itself, for nodes that do not simulate several. The effects of earlier transactions are written into the
 * storage of their tokens by state overrides, where the node takes those and the storage places are known.
 */

import { revertReason } from '../../contracts/revert-reason.ts'
import { encodeUint, readQuantity, toQuantity } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { type RpcAnswer, type RpcCall, resultIn } from '../../nodes/json-rpc.ts'
import { isRevert } from '../../nodes/rpc-error.ts'
import { type GasAnswer, type GasCall, type GasQuestion, isPlausibleGas, type StepGas } from './gas-question.ts'
import type { StepEffect } from './steps.ts'
import type { TokenSlots } from './token-slots.ts'

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
export function encodeEstimates({ wallet, calls }: GasQuestion, slotsOf?: SlotsOf): readonly (RpcCall | undefined)[] {
  return calls.map((call, place) => {
    const before = calls.slice(0, place).flatMap(({ effect }) => effect ?? [])
    const overrides = place === 0 ? {} : slotsOf && overridesFor(before, wallet, slotsOf)
    return overrides && encodeEstimate(wallet, call, overrides)
  })
}

/** An account without code, to which the override gives code that reverts: a node that answers with an estimate has ignored the override. */
const CONTROL = '0x5a17feed5a17feed5a17feed5a17feed5a17feed'

/** An estimate that fails only where the node takes state overrides. */
export const OVERRIDES_CONTROL: RpcCall = {
  method: 'eth_estimateGas',
  params: JSON.stringify([{ from: CONTROL, to: CONTROL }, 'latest', { [CONTROL]: { code: '0x60006000fd' } }]),
  isOptional: true,
}

/** Whether a node takes state overrides, by its answer to {@link OVERRIDES_CONTROL}; undefined where the answer does not show it. */
export function takesOverrides(answer: RpcAnswer | undefined): boolean | undefined {
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
export function decodeEstimates(
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
