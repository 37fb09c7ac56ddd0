import type { Hex } from '../../domain/hex.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import type { StoredBlock, StoredChain } from '../sql/chain-state-repository.ts'

/** The block up to which payments become final: the chain's final block, or the last block that was read where that is lower. */
export function finalisedBlockOf({
  finalBlock,
  scannedBlock,
}: Pick<StoredChain, 'finalBlock' | 'scannedBlock'>): number {
  return Math.min(finalBlock, scannedBlock)
}

/** Of blocks that were read, lowest first, those to store: from the last final one on, so that a reorg can be detected, and always the last. */
export function blocksToStore(blocks: readonly BlockHeader[], finalBlock: number): BlockHeader[] {
  const last = blocks.at(-1)
  return blocks.filter((block) => block.number >= finalBlock || block === last)
}

/** By block number, the accounts with payments or refunds in it. */
export function accountsByBlock(findings: Findings | undefined): Map<number, number[]> {
  const accounts = new Map<number, number[]>()
  for (const [accountId, { payments, refunds }] of findings?.accounts ?? []) {
    for (const number of new Set([...payments, ...refunds].map(({ blockNumber }) => blockNumber))) {
      accounts.set(number, [...(accounts.get(number) ?? []), accountId])
    }
  }
  return accounts
}

/**
 * Finds the transactions whose block is part of the chain as it was read: it is one of the stored blocks, or it is final and not stored any more.
 *
 * @param blocks - the chain's stored blocks
 * @param blockOf - the block in which each transaction was read just now
 */
export function findCanonical(
  { scannedBlock, finalBlock }: Pick<StoredChain, 'scannedBlock' | 'finalBlock'>,
  blocks: readonly StoredBlock[],
  blockOf: ReadonlyMap<Hex, StoredBlock>,
): Set<Hex> {
  const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]))
  const canonical = [...blockOf].filter(([, { number, hash }]) => {
    if (number > scannedBlock) return false
    const stored = hashes.get(number)
    return stored === undefined ? number <= finalBlock : stored === hash
  })
  return new Set(canonical.map(([txHash]) => txHash))
}

/**
 * Decides whether a chain can be read anew from a block.
 *
 * @param blocks - the chain's stored blocks, lowest first
 * @returns STORED: the block is one of them. FINAL: it is lower than all of them, so it must be stored. NOT_READ: it was not read yet.
 *   REPLACED: another block was read at its number, so what was found below it may not be true
 */
export function judgeRestart(
  blocks: readonly StoredBlock[],
  { number, hash }: StoredBlock,
): 'STORED' | 'FINAL' | 'NOT_READ' | 'REPLACED' {
  const stored = blocks.find((block) => block.number === number)
  if (stored !== undefined) return stored.hash === hash ? 'STORED' : 'REPLACED'
  const [lowest] = blocks
  return lowest === undefined || number < lowest.number ? 'FINAL' : 'NOT_READ'
}
