import { keccak256, stringToHex } from 'viem/utils'
import type { PreparedTransaction } from '../domain/route.ts'

/**
 * Writes transactions as a file that the Transaction Builder of Safe{Wallet} imports.
 *
 * @param createdAt - milliseconds since 1970
 * @see https://github.com/safe-global/safe-wallet-monorepo, apps/tx-builder
 */
export function writeSafeFile(name: string, sent: readonly PreparedTransaction[], createdAt: number): string {
  const meta = { txBuilderVersion: '1.18.2', createdFromSafeAddress: sent[0]?.from ?? '' }
  const unused = { contractMethod: null, contractInputsValues: null }
  const transactions = sent.map(({ to, value, data }) => ({ to, value: String(BigInt(value)), data, ...unused }))
  const file = { version: '1.0', chainId: String(Number(sent[0]?.chainId)), createdAt, transactions }
  // The builder warns of a file whose checksum is another. It leaves out the name, which its user may change.
  const checksum = keccak256(stringToHex(serialize({ ...file, meta: { ...meta, name: null } })))
  return JSON.stringify({ ...file, meta: { ...meta, name, checksum } })
}

/** Of an object first its names in order, then its values. */
function serialize(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(serialize).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${JSON.stringify(entries.map(([name]) => name))}${entries.map(([, each]) => `${serialize(each)},`).join('')}}`
}
