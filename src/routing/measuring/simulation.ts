/**
 * All transactions of a route in one simulated block, each on the state that the one before left.
 *
 * @see https://github.com/ethereum/execution-apis, eth_simulateV1
 */

import { revertReason } from '../../contracts/revert-reason.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import type { RpcCall } from '../../nodes/json-rpc.ts'
import { isObject, type RpcRefusal, readRefusal } from '../../nodes/rpc-error.ts'
import { gasToAllow } from '../quotes/gas.ts'
import { allowedGas, type GasAnswer, type GasQuestion, isPlausibleGas, type StepGas } from './gas-question.ts'

/** The simulated wallet holds this much more than the real one: a lack of gas is shown by the route's readiness, not by a failed simulation. */
const SPARE_WEI = 1n << 80n

/** Encodes the simulation. It sets the block's time, since the default of some nodes is long past. */
export function encodeSimulation({ wallet, balance, simulateAtSec, calls }: GasQuestion): RpcCall {
  const block = {
    blockOverrides: { time: toQuantity(simulateAtSec) },
    stateOverrides: { [wallet]: { balance: toQuantity(balance + SPARE_WEI) } },
    calls: calls.map((call) => ({
      from: wallet,
      to: call.to,
      value: toQuantity(call.value),
      input: call.data,
      gas: toQuantity(allowedGas(call)),
    })),
  }
  const params = JSON.stringify([{ blockStateCalls: [block], validation: false }, 'latest'])
  return { method: 'eth_simulateV1', params, isOptional: true }
}

/** A simulation of nothing, to find out whether the node simulates. */
export const EMPTY_SIMULATION: RpcCall = {
  method: 'eth_simulateV1',
  params: '[{"blockStateCalls":[{"calls":[]}]},"latest"]',
  isOptional: true,
}

/** @returns undefined where it is no usable answer */
export function decodeSimulation(result: unknown, { calls }: GasQuestion): GasAnswer | undefined {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  const simulated: unknown = isObject(block) ? block.calls : undefined
  if (!Array.isArray(simulated) || simulated.length !== calls.length) return undefined
  const steps: (StepGas | undefined)[] = []
  for (const [place, call] of calls.entries()) {
    const one: unknown = simulated[place]
    if (!isObject(one)) return undefined
    const used = readQuantity(one.gasUsed)
    if (used === undefined || !isPlausibleGas(used, call)) return undefined
    if (readQuantity(one.status) === 1n) steps.push(simulatedGas(used, readQuantity(one.maxUsedGas)))
    // It used all the gas that it was allowed, so it ran out: this and what follows says nothing of the real transaction.
    else if (used === allowedGas(call)) return undefined
    else return { reverted: { place, detail: reasonOf(one) } }
  }
  return { steps }
}

/** @param maxUsed - the gas before refunds, where the node gives it; else refunds may have been a fifth of it */
function simulatedGas(used: bigint, maxUsed: bigint | undefined): StepGas {
  const most = maxUsed !== undefined && maxUsed >= used && maxUsed <= 2n * used ? maxUsed : gasToAllow(used)
  return { way: 'SIMULATED', used, most }
}

function reasonOf({ returnData, error }: Record<string, unknown>): string {
  const refusal: RpcRefusal = isObject(error) ? readRefusal(error) : { message: '' }
  const returned = typeof returnData === 'string' && returnData.length > 2 ? returnData : undefined
  return revertReason(refusal.data ?? returned, refusal.message)
}
