import type { IncomingHttpHeaders } from 'node:http'
import { waybillError } from '../../errors/waybill-error.ts'
import { headerOf } from '../calls/call.ts'
import type { RpcForm } from './rpc-form.ts'

const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
}

/**
 * Reads `grpc-timeout`: up to eight digits and a unit.
 *
 * @returns milliseconds; undefined when there is none
 * @throws WaybillError INVALID_FIELD
 */
export function readGrpcTimeout(headers: IncomingHttpHeaders): number | undefined {
  const value = headerOf(headers, 'grpc-timeout')
  if (value === null) return undefined
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? []
  const factor = unitMs[unit]
  if (digits === undefined || factor === undefined) throw invalid('grpc-timeout', value)
  return Number(digits) * factor
}

/**
 * Reads `connect-timeout-ms`: up to ten digits.
 *
 * @returns milliseconds; undefined when there is none
 * @throws WaybillError INVALID_FIELD
 */
export function readConnectTimeout(headers: IncomingHttpHeaders): number | undefined {
  const value = headerOf(headers, 'connect-timeout-ms')
  if (value === null) return undefined
  if (!/^\d{1,10}$/.test(value)) throw invalid('connect-timeout-ms', value)
  return Number(value)
}

/** Reads the timeout of a call in the header of its protocol. */
export function readTimeout({ protocol }: Pick<RpcForm, 'protocol'>, headers: IncomingHttpHeaders): number | undefined {
  return protocol === 'connect' ? readConnectTimeout(headers) : readGrpcTimeout(headers)
}

function invalid(field: string, value: string) {
  return waybillError('INVALID_FIELD', { field, detail: `"${value}" is not a timeout` })
}
