/**
 * All transactions of a route in one simulated block, each on what the one before left.
 *
 * @see https://github.com/ethereum/execution-apis, eth_simulateV1
 */

import { revertReason } from '../../contracts/revert-reason.ts'
import { isObject, type RpcCall, type RpcRefusal, readRefusal } from '../../nodes/json-rpc.ts'
import {
  allowedGas,
  type GasAnswer,
  type GasQuestion,
  isPlausibleGas,
  readQuantity,
  type StepGas,
  toQuantity,
} from './question.ts'

/** The wallet is given this much beside what it holds: what it lacks for gas is told by the route's readiness. */
const SPARE_WEI = 1n << 80n

/** Asks for the simulation. The block's time is given: by default some nodes take one long ago. */
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

/** Simulates nothing, to see whether the node can. */
export const EMPTY_SIMULATION: RpcCall = {
  method: 'eth_simulateV1',
  params: '[{"blockStateCalls":[{"calls":[]}]},"latest"]',
  isOptional: true,
}

/** @returns undefined where it is no such answer */
export function decodeSimulation(result: unknown, { calls }: GasQuestion): GasAnswer | undefined {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  const told: unknown = isObject(block) ? block.calls : undefined
  if (!Array.isArray(told) || told.length !== calls.length) return undefined
  const steps: (StepGas | undefined)[] = []
  for (const [place, call] of calls.entries()) {
    const one: unknown = told[place]
    if (!isObject(one)) return undefined
    const used = readQuantity(one.gasUsed)
    if (used === undefined || !isPlausibleGas(used, call)) return undefined
    if (readQuantity(one.status) === 1n) steps.push(simulatedGas(used, readQuantity(one.maxUsedGas)))
    // One that used all that it may ran out of gas: what comes behind it says nothing.
    else if (used === allowedGas(call)) return undefined
    else return { reverted: { place, detail: reasonOf(one) } }
  }
  return { steps }
}

/** Without being told, refunds may be a fifth of all. */
function simulatedGas(used: bigint, told: bigint | undefined): StepGas {
  const most = told !== undefined && told >= used && told <= 2n * used ? told : (used * 5n + 3n) / 4n
  return { way: 'SIMULATED', used, most }
}

function reasonOf({ returnData, error }: Record<string, unknown>): string {
  const refusal: RpcRefusal = isObject(error) ? readRefusal(error) : { message: '' }
  const returned = typeof returnData === 'string' && returnData.length > 2 ? returnData : undefined
  return revertReason(refusal.data ?? returned, refusal.message)
}

/** How nodes say that they do not know a method: by code, or only in words. */
const UNKNOWN_METHOD_CODES = new Set([-32601, -32004])
const UNKNOWN_METHOD =
  /not (?:found|supported|available|enabled|exist|allowed|whitelisted)|unsupported|(?:unknown|invalid|unrecogni[sz]ed) method/i

/** Whether a node's error says that it cannot do this at all. */
export function isUnknownMethod({ code, message }: RpcRefusal): boolean {
  return (code !== undefined && UNKNOWN_METHOD_CODES.has(code)) || UNKNOWN_METHOD.test(message)
}
