/**
 * All transactions of a route, each in a simulated block of its own, on the state that the one before left.
 *
 * @see https://github.com/ethereum/execution-apis, eth_simulateV1
 */

import { revertReason } from '../../contracts/returned-texts.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import type { RpcCall } from '../../nodes/json-rpc.ts'
import { isObject, type RpcRefusal, readRefusal } from '../../nodes/rpc-error.ts'
import { gasToAllow } from './gas.ts'
import { type GasAnswer, type GasQuestion, isPlausibleGas, type StepGas } from './steps.ts'

/** The simulated wallet holds this much more than the real one: a lack of gas is shown by the route's readiness, not by a failed simulation. */
const SPARE_WEI = 1n << 80n

/**
 * Encodes the simulation. It sets the time of each block, since the default of some nodes is long past. A transaction has no gas limit and a
 * block of its own, so that it may use the gas of a whole block: contracts that are paid may take more than any table says.
 */
export function encodeSimulation({ wallet, balance, simulateAtSec, calls }: GasQuestion): RpcCall {
  const rich = { [wallet]: { balance: toQuantity(balance + SPARE_WEI) } }
  const blocks = calls.map(({ to, value, data }, place) => ({
    blockOverrides: { time: toQuantity(simulateAtSec + place) },
    ...(place === 0 && { stateOverrides: rich }),
    calls: [{ from: wallet, to, value: toQuantity(value), input: data }],
  }))
  const params = JSON.stringify([{ blockStateCalls: blocks, validation: false }, 'latest'])
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
  if (!Array.isArray(result) || result.length !== calls.length) return undefined
  const steps: StepGas[] = []
  for (const [place, block] of (result as readonly unknown[]).entries()) {
    const simulated: unknown = isObject(block) ? block.calls : undefined
    const call: unknown = Array.isArray(simulated) ? simulated[0] : undefined
    if (!isObject(call)) return undefined
    const used = readQuantity(call.gasUsed)
    if (used === undefined) return undefined
    if (readQuantity(call.status) !== 1n) return { reverted: { place, detail: reasonOf(call) } }
    if (!isPlausibleGas(used)) return undefined
    steps.push(simulatedGas(used, readQuantity(call.maxUsedGas)))
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
