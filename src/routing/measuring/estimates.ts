/**
 * The gas of each transaction by itself, for nodes that do not simulate several. What the ones before leave is written into the storage
 * of their tokens for the length of the call, where the node takes that and the places are known.
 */

import { revertReason } from '../../contracts/revert-reason.ts'
import type { Address } from '../../domain/address.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { StepEffect } from '../quotes/steps.ts'
import {
  type GasAnswer,
  type GasCall,
  type GasQuestion,
  isPlausibleGas,
  readQuantity,
  type StepGas,
  toQuantity,
} from './question.ts'
import type { TokenSlots } from './token-slots.ts'

/** What is known of the tokens of a chain. */
export type SlotsOf = (token: Address) => TokenSlots | undefined

/** Changes to the state, by contract and place. */
type Overrides = Record<Address, { stateDiff: Record<string, string> }>

/** @returns undefined where a place is not known */
function overridesFor(effects: readonly StepEffect[], wallet: Address, slotsOf: SlotsOf): Overrides | undefined {
  const overrides: Overrides = {}
  for (const effect of effects) {
    const slots = slotsOf(effect.token)
    if (slots === undefined) return undefined
    const place = effect.kind === 'BALANCE' ? slots.balanceOf(wallet) : slots.allowanceOf(wallet, effect.spender)
    const ofToken = (overrides[effect.token] ??= { stateDiff: {} })
    ofToken.stateDiff[place] = `0x${effect.amount.toString(16).padStart(64, '0')}`
  }
  return overrides
}

function encodeEstimate(wallet: Address, { to, data, value }: GasCall, overrides: Overrides): RpcCall {
  const call = { from: wallet, to, data, value: toQuantity(value) }
  const further = Object.keys(overrides).length === 0 ? [] : ['latest', overrides]
  return { method: 'eth_estimateGas', params: JSON.stringify([call, ...further]), isOptional: true }
}

/**
 * Asks for the gas of each transaction; undefined for one that cannot be asked for, since what it needs from those before cannot be
 * written.
 *
 * @param slotsOf - undefined where the node takes no changes of state
 */
export function encodeEstimates({ wallet, calls }: GasQuestion, slotsOf?: SlotsOf): readonly (RpcCall | undefined)[] {
  return calls.map((call, place) => {
    const before = calls.slice(0, place).flatMap(({ effect }) => effect ?? [])
    const overrides = place === 0 ? {} : slotsOf && overridesFor(before, wallet, slotsOf)
    return overrides && encodeEstimate(wallet, call, overrides)
  })
}

/** An account without code, which in this call alone reverts: who answers with an estimate has left the change of state out. */
const CONTROL = '0x5a17feed5a17feed5a17feed5a17feed5a17feed'

/** Asks for what only fails where the node takes changes of state. */
export const OVERRIDES_CONTROL: RpcCall = {
  method: 'eth_estimateGas',
  params: JSON.stringify([{ from: CONTROL, to: CONTROL }, 'latest', { [CONTROL]: { code: '0x60006000fd' } }]),
  isOptional: true,
}

/** Whether a node takes changes of state, by its answer to {@link OVERRIDES_CONTROL}; undefined where it could not be told. */
export function takesOverrides(answer: RpcAnswer | undefined): boolean | undefined {
  if (answer === undefined) return undefined
  if ('result' in answer) return false
  const { refusal } = answer.failure
  return refusal && isRevert(refusal.code, refusal.message)
}

/** Nodes answer a revert with the code 3 that EIP-1474 gives it, or only say so. */
function isRevert(code: number | undefined, message: string): boolean {
  return code === 3 || /revert/i.test(message)
}

/**
 * Reads the estimates. One that no transaction of its kind can take counts as not measured.
 *
 * @param answers - in the order of the calls; undefined for one that was not asked for
 */
export function decodeEstimates(
  answers: readonly (RpcAnswer | undefined)[],
  { calls }: Pick<GasQuestion, 'calls'>,
): GasAnswer {
  const steps: (StepGas | undefined)[] = []
  for (const [place, call] of calls.entries()) {
    const answer = answers[place]
    const refusal = answer !== undefined && 'failure' in answer ? answer.failure.refusal : undefined
    if (refusal !== undefined && isRevert(refusal.code, refusal.message)) {
      return { reverted: { place, detail: revertReason(refusal.data, refusal.message) } }
    }
    const most = answer !== undefined && 'result' in answer ? readQuantity(answer.result) : undefined
    steps.push(most === undefined || !isPlausibleGas(most, call) ? undefined : { way: 'ESTIMATED', most })
  }
  return { steps }
}
