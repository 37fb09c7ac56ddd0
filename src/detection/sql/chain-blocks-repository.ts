import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import type { StoredBlock, StoredChain } from './detection-repository.ts'
import type { WrittenChain } from './payment-rows.ts'

/** Accounts with payments or refunds in these blocks. */
export async function accountsInBlocks(
  trx: Knex,
  chainId: string,
  operator: '<=' | '>',
  number: number,
): Promise<number[]> {
  const rows = await trx('chain_blocks')
    .select<{ account_ids: number[] }[]>('account_ids')
    .where({ chain_id: chainId })
    .where('number', operator, number)
    .whereRaw(`account_ids <> '{}'`)
  return rows.flatMap(({ account_ids }) => account_ids)
}

/** Keeps the blocks that are not final and the last, with the accounts that something was found for. */
export async function storeBlocks(
  trx: Knex,
  chainId: string,
  stored: {
    readonly blocks: readonly BlockHeader[]
    readonly finalBlock: number
    readonly findings?: Findings | undefined
  },
): Promise<void> {
  const { blocks, finalBlock, findings } = stored
  const last = blocks.at(-1)
  const kept = blocks.filter((block) => block.number >= finalBlock || block === last)
  if (kept.length === 0) return
  const accounts = accountsByBlock(findings)
  await trx('chain_blocks').insert(
    kept.map((block) => ({
      chain_id: chainId,
      number: block.number,
      hash: hexToBytes(block.hash),
      timestamp: new Date(block.timestampSec * 1_000),
      account_ids: accounts.get(block.number) ?? [],
    })),
  )
}

/** The last final block stays, as the ground on which the others stand; its payments are final, so it needs no accounts. */
export async function dropFinalBlocks(trx: Knex, chainId: string, finalBlock: number): Promise<void> {
  await trx('chain_blocks').where({ chain_id: chainId }).where('number', '<', finalBlock).delete()
  await trx('chain_blocks')
    .where({ chain_id: chainId, number: finalBlock })
    .whereRaw(`account_ids <> '{}'`)
    .update({ account_ids: [] })
}

/** So that finality and reorgs of these blocks reach the account. */
export async function noteAccount(
  trx: Knex,
  chainId: string,
  accountId: number,
  found: readonly { readonly blockNumber: number }[],
): Promise<void> {
  await trx('chain_blocks')
    .where({ chain_id: chainId })
    .whereIn('number', [...new Set(found.map(({ blockNumber }) => blockNumber))])
    .whereRaw('not (? = any(account_ids))', [accountId])
    .update({ account_ids: trx.raw('account_ids || ?::integer', [accountId]) })
}

/** Transactions whose block was looked at and still stands. */
export async function findStanding(
  trx: Knex,
  stored: StoredChain,
  blockOf: ReadonlyMap<Hex, StoredBlock>,
): Promise<Set<Hex>> {
  const hashes = new Map((await readBlocks(trx, stored.chainId)).map(({ number, hash }) => [number, hash]))
  const standing = [...blockOf].filter(([, { number, hash }]) => {
    if (number > stored.scannedBlock) return false
    const kept = hashes.get(number)
    return kept === undefined ? number <= stored.finalBlock : kept === hash
  })
  return new Set(standing.map(([txHash]) => txHash))
}

/**
 * Whether a block to begin anew from is final, below all that are kept, or one of these.
 *
 * @throws RangeError for one that was not looked at, or is another now: what was found below it would not be true
 */
export async function findRestartGround(
  trx: Knex,
  { chainId, network }: WrittenChain,
  { number, hash }: BlockHeader,
): Promise<'FINAL' | 'KEPT'> {
  const blocks = await readBlocks(trx, chainId)
  const kept = blocks.find((block) => block.number === number)
  if (kept?.hash === hash) return 'KEPT'
  const [lowest] = blocks
  if (kept === undefined && (lowest === undefined || number < lowest.number)) return 'FINAL'
  const why = kept === undefined ? 'was not looked at yet' : 'is another now than the one that was looked at'
  throw new RangeError(`block ${number} of ${network} ${why}: choose a lower one`)
}

/** Lowest first. */
async function readBlocks(trx: Knex, chainId: string): Promise<StoredBlock[]> {
  const rows = await trx('chain_blocks')
    .select<{ number: bigint; hash: Buffer }[]>('number', 'hash')
    .where({ chain_id: chainId })
    .orderBy('number')
  return rows.map(({ number, hash }) => ({ number: Number(number), hash: bytesToHex(hash) }))
}

function accountsByBlock(findings: Findings | undefined): Map<number, number[]> {
  const accounts = new Map<number, number[]>()
  for (const [accountId, { payments, refunds }] of findings?.accounts ?? []) {
    for (const number of new Set([...payments, ...refunds].map(({ blockNumber }) => blockNumber))) {
      accounts.set(number, [...(accounts.get(number) ?? []), accountId])
    }
  }
  return accounts
}
