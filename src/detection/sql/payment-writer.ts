import type { Knex } from 'knex'
import { type Address, addressToBytes } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { assertLeaseHeld, type Lease } from '../../store/leases-repository.ts'
import type { DetectedPayment, DetectedRefund, Findings } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import {
  accountsInBlocks,
  dropFinalBlocks,
  findRestartGround,
  findStanding,
  noteAccount,
  storeBlocks,
} from './chain-blocks-repository.ts'
import { type StoredBlock, type StoredChain, toStoredChain } from './detection-repository.ts'
import { type AppliedChange, applyAccountChange } from './ledger-repository.ts'
import type { WrittenChain } from './payment-rows.ts'
import { forgetRequestProxies, storeRequestProxies } from './request-proxies-repository.ts'
import { forgetEvents, forgetUnmatched, pruneUnmatched, storeUnmatched } from './unmatched-repository.ts'

/** Somebody else has moved the chain's checkpoint, so what was about to be written was decided on an old state. */
export class CheckpointMovedError extends Error {
  override readonly name = 'CheckpointMovedError'

  constructor(network: string) {
    super(`the checkpoint of ${network} is not where this process left it`)
  }
}

/** How far a chain was looked at, before and after. */
export interface Advance {
  readonly lease: Lease
  /** Where this process believes the checkpoint to be. */
  readonly from: StoredBlock
  /** The blocks looked at, lowest first; may leave out final ones but for the last. Empty: only head and finality moved. */
  readonly blocks: readonly BlockHeader[]
  readonly headBlock: number
  readonly finalBlock: number
  /** Whether the chain has ever told its finalized block. */
  readonly hasFinalizedTag: boolean
  readonly findings?: Findings
}

/** Final blocks of a contract that was added after they were looked at. */
export interface ContractEvents {
  readonly lease: Lease
  readonly address: Address
  /** The last block that was read. */
  readonly filledBlock: number
  readonly findings: Findings
}

/** Blocks that no longer stand are taken back. */
export interface Rewind {
  readonly lease: Lease
  readonly from: StoredBlock
  /** The highest block that still stands. */
  readonly to: StoredBlock
}

/** Findings for one account in blocks that were looked at before. */
export interface Attachment {
  readonly accountId: number
  readonly findings: Findings
  /** The block that each transaction was read in. */
  readonly blockOf: ReadonlyMap<Hex, StoredBlock>
}

/** Events of an account that were looked at again. */
export interface Correction extends Attachment {
  /** Whether all is taken back in the end, as if nothing had been written. */
  readonly isTrial?: boolean
  /** Written in the same transaction, after the rest. What it throws takes all back. */
  readonly beside?: (trx: Knex.Transaction, standing: ReadonlySet<Hex>) => Promise<void>
}

/** What a correction came to. */
export interface Corrected extends AppliedChange {
  /** Transactions that stood where they were read; of others nothing was written. */
  readonly standing: ReadonlySet<Hex>
}

/** Writes what detection finds. Each call is one transaction: all of it is there afterwards, or nothing. */
export interface PaymentWriter {
  /** Begins to follow a chain, unless it is followed already. */
  open(genesisHash: Hex, checkpoint: BlockHeader, headBlock: number): Promise<void>
  /** @throws CheckpointMovedError, LeaseLostError */
  advance(advance: Advance, signal?: AbortSignal): Promise<void>
  /** @throws CheckpointMovedError, LeaseLostError */
  rewind(rewind: Rewind, signal?: AbortSignal): Promise<void>
  /** Leaves out what is in blocks that no longer stand or were not looked at yet; these are looked at with the new topic known. */
  attach(attachment: Attachment, signal?: AbortSignal): Promise<void>
  /**
   * Makes what is stored of all events in the findings what was found now, payments that do not count any more included, and settles
   * their requests. Imported payments stay as they are.
   *
   * @returns undefined for a chain that nobody has looked at
   */
  correct(correction: Correction, signal?: AbortSignal): Promise<Corrected | undefined>
  /** Adds what an added contract's events in final blocks meant. @throws LeaseLostError */
  addContractEvents(added: ContractEvents, signal?: AbortSignal): Promise<void>
  /**
   * Takes back all that was detected above a block, final or not, and clears the alarm, so that the chain is looked at anew from there.
   *
   * @throws LeaseLostError; RangeError for a block that was not looked at, or is another now than it was then
   */
  restart(lease: Lease, from: BlockHeader): Promise<void>
  /** Stops the chain for everybody until an operator clears it. */
  raiseAlarm(text: string): Promise<void>
  /** Keeps so many of the latest events of unknown topics, and so many that are unmatched for accounts, and removes the rest. */
  pruneUnmatched(keep: number): Promise<void>
}

/** Makes the writer of one chain. */
export function createPaymentWriter(options: {
  readonly knex: Knex
  readonly chain: WrittenChain
  readonly clock: () => Date
}): PaymentWriter {
  const { knex, chain, clock } = options
  const { chainId } = chain

  /** Everything that touches the chain's rows waits here, so that checkpoint, blocks and payments move together. */
  async function lockChain(trx: Knex): Promise<StoredChain | undefined> {
    const row = await trx('chain_state').where({ chain_id: chainId }).forUpdate().first()
    return row === undefined ? undefined : toStoredChain(row)
  }

  async function lockAt(trx: Knex.Transaction, lease: Lease, from: StoredBlock): Promise<StoredChain> {
    await assertLeaseHeld(trx, lease)
    const stored = await lockChain(trx)
    if (stored?.scannedBlock !== from.number || stored.scannedHash !== from.hash) {
      throw new CheckpointMovedError(chain.network)
    }
    return stored
  }

  /** Brings to accounts what was found for them, and settles also the others that are given. */
  async function applyToAccounts(
    trx: Knex.Transaction,
    findings: Findings | undefined,
    others: readonly number[],
    blocks: { readonly finalBlock: number; readonly headBlock: number },
  ) {
    const accountIds = new Set([...(findings?.accounts.keys() ?? []), ...others])
    for (const accountId of [...accountIds].toSorted((a, b) => a - b)) {
      const found = findings?.accounts.get(accountId) ?? NOTHING
      await applyAccountChange(trx, chain, { accountId, ...found, ...blocks, now: clock() })
    }
    await storeUnmatched(trx, chainId, findings?.unmatched ?? [])
    await storeRequestProxies(trx, chainId, findings?.proxies ?? [])
  }

  async function correctIn(
    trx: Knex.Transaction,
    stored: StoredChain,
    { accountId, findings, blockOf, beside }: Correction,
  ): Promise<Corrected> {
    const standing = await findStanding(trx, stored, blockOf)
    const stands = ({ txHash }: { txHash: Hex }) => standing.has(txHash)
    const found = findings.accounts.get(accountId) ?? NOTHING
    const payments = found.payments.filter(stands)
    const refunds = found.refunds.filter(stands)
    const unmatched = findings.unmatched.filter((event) => event.accountId === accountId && stands(event))
    const rereadEvents = [...payments, ...refunds, ...unmatched]
    await noteAccount(trx, chainId, accountId, [...payments, ...refunds])
    const { headBlock, finalBlock, scannedBlock } = stored
    const settledBlock = Math.min(finalBlock, scannedBlock)
    const change = { accountId, payments, refunds, rereadEvents, finalBlock: settledBlock, headBlock, now: clock() }
    const applied = await applyAccountChange(trx, chain, change)
    await forgetEvents(trx, chainId, accountId, rereadEvents)
    await storeUnmatched(trx, chainId, unmatched)
    await beside?.(trx, standing)
    return { ...applied, standing }
  }

  return {
    open: (genesisHash, checkpoint, headBlock) =>
      knex.transaction(async (trx) => {
        const opened = await trx('chain_state')
          .insert({
            chain_id: chainId,
            network: chain.network,
            genesis_hash: hexToBytes(genesisHash),
            scanned_block: checkpoint.number,
            scanned_hash: hexToBytes(checkpoint.hash),
            scanned_time: new Date(checkpoint.timestampSec * 1_000),
            head_block: headBlock,
            final_block: 0,
            alarm: null,
            updated_at: clock(),
          })
          .onConflict('chain_id')
          .ignore()
          .returning('chain_id')
        if (opened.length > 0) await storeBlocks(trx, chainId, { blocks: [checkpoint], finalBlock: 0 })
      }),

    advance: ({ lease, from, blocks, headBlock, finalBlock, hasFinalizedTag, findings }, signal) =>
      inTransaction(knex, signal, async (trx) => {
        const stored = await lockAt(trx, lease, from)
        const last = blocks.at(-1)
        const scannedBlock = last?.number ?? stored.scannedBlock
        const settledBlock = Math.min(finalBlock, scannedBlock)
        await storeBlocks(trx, chainId, { blocks, finalBlock: settledBlock, findings })
        const settled = await accountsInBlocks(trx, chainId, '<=', settledBlock)
        await applyToAccounts(trx, findings, settled, { finalBlock: settledBlock, headBlock })
        await dropFinalBlocks(trx, chainId, settledBlock)
        await trx('chain_state')
          .where({ chain_id: chainId })
          .update({
            ...(last && {
              scanned_block: last.number,
              scanned_hash: hexToBytes(last.hash),
              scanned_time: new Date(last.timestampSec * 1_000),
            }),
            head_block: headBlock,
            final_block: finalBlock,
            has_finalized_tag: hasFinalizedTag,
            updated_at: clock(),
          })
      }),

    addContractEvents: ({ lease, address, filledBlock, findings }, signal) =>
      inTransaction(knex, signal, async (trx) => {
        await assertLeaseHeld(trx, lease)
        const stored = await lockChain(trx)
        if (stored === undefined) return
        const { finalBlock, scannedBlock, headBlock } = stored
        await applyToAccounts(trx, findings, [], { finalBlock: Math.min(finalBlock, scannedBlock), headBlock })
        await trx('chain_contracts')
          .where({ chain_id: chainId, address: addressToBytes(address) })
          .update({ filled_block: filledBlock })
      }),

    rewind: ({ lease, from, to }, signal) =>
      inTransaction(knex, signal, async (trx) => {
        const stored = await lockAt(trx, lease, from)
        const accountIds = new Set(await accountsInBlocks(trx, chainId, '>', to.number))
        for (const accountId of [...accountIds].toSorted((a, b) => a - b)) {
          const { finalBlock, headBlock } = stored
          const settledBlock = Math.min(finalBlock, to.number)
          const change = {
            accountId,
            ...NOTHING,
            finalBlock: settledBlock,
            headBlock,
            removeAbove: to.number,
            now: clock(),
          }
          await applyAccountChange(trx, chain, change)
        }
        await trx('unmatched_events').where({ chain_id: chainId }).where('block_number', '>', to.number).delete()
        await forgetRequestProxies(trx, chainId, to.number)
        await trx('chain_blocks').where({ chain_id: chainId }).where('number', '>', to.number).delete()
        const { timestamp } = await trx('chain_blocks')
          .where({ chain_id: chainId, number: to.number })
          .first('timestamp')
        await trx('chain_state')
          .where({ chain_id: chainId })
          .update({
            scanned_block: to.number,
            scanned_hash: hexToBytes(to.hash),
            scanned_time: timestamp,
            updated_at: clock(),
          })
      }),

    attach: ({ accountId, findings, blockOf }, signal) =>
      inTransaction(knex, signal, async (trx) => {
        const stored = await lockChain(trx)
        if (stored === undefined) return
        const standing = await findStanding(trx, stored, blockOf)
        const stands = ({ txHash }: { txHash: Hex }) => standing.has(txHash)
        const found = findings.accounts.get(accountId) ?? NOTHING
        const payments = found.payments.filter(stands)
        const refunds = found.refunds.filter(stands)
        const unmatched = findings.unmatched.filter(stands)
        await noteAccount(trx, chainId, accountId, [...payments, ...refunds])
        const { headBlock, finalBlock, scannedBlock } = stored
        const settledBlock = Math.min(finalBlock, scannedBlock)
        const change = { accountId, payments, refunds, finalBlock: settledBlock, headBlock, now: clock() }
        await applyAccountChange(trx, chain, change)
        await forgetUnmatched(trx, chainId, { accountId, txHashes: standing, topics: findings.directory.keys() })
        await storeUnmatched(trx, chainId, unmatched)
      }),

    async correct({ isTrial = false, ...correction }, signal) {
      let corrected: Corrected | undefined
      const work = inTransaction(knex, signal, async (trx) => {
        const stored = await lockChain(trx)
        if (stored === undefined) return
        corrected = await correctIn(trx, stored, correction)
        if (isTrial) throw new TrialEnded()
      })
      await work.catch((error: unknown) => {
        if (!(error instanceof TrialEnded)) throw error
      })
      return corrected
    },

    restart: (lease, from) =>
      knex.transaction(async (trx) => {
        await assertLeaseHeld(trx, lease)
        const stored = await lockChain(trx)
        if (stored === undefined) return
        const { number } = from
        const ground = await findRestartGround(trx, chain, from)
        const { rows } = await trx.raw<{ rows: { account_id: number }[] }>(
          `select account_id from payments where chain_id = ? and block_number > ?
           union select account_id from refunds where chain_id = ? and block_number > ? order by account_id`,
          [chainId, number, chainId, number],
        )
        for (const { account_id: accountId } of rows) {
          const removal = { removeAbove: number, removeFinal: true, finalBlock: 0, headBlock: stored.headBlock }
          await applyAccountChange(trx, chain, { accountId, ...NOTHING, ...removal, now: clock() })
        }
        await trx('unmatched_events').where({ chain_id: chainId }).where('block_number', '>', number).delete()
        await forgetRequestProxies(trx, chainId, number)
        // Payments in blocks below that are not final wait for these.
        await trx('chain_blocks').where({ chain_id: chainId }).where('number', '>', number).delete()
        if (ground === 'FINAL') await storeBlocks(trx, chainId, { blocks: [from], finalBlock: 0 })
        await trx('chain_contracts')
          .where({ chain_id: chainId })
          .update({
            filled_block: trx.raw('least(filled_block, ?::bigint)', [number]),
            fill_until: trx.raw('least(fill_until, ?::bigint)', [number]),
          })
        await trx('chain_state')
          .where({ chain_id: chainId })
          .update({
            scanned_block: number,
            scanned_hash: hexToBytes(from.hash),
            scanned_time: new Date(from.timestampSec * 1_000),
            final_block: Math.min(stored.finalBlock, number),
            alarm: null,
            updated_at: clock(),
          })
      }),

    async raiseAlarm(text) {
      await knex('chain_state').where({ chain_id: chainId }).update({ alarm: text, updated_at: clock() })
    },

    pruneUnmatched: (keep) => pruneUnmatched(knex, chainId, keep),
  }
}

/** Takes back a transaction whose outcome alone was asked for. */
class TrialEnded extends Error {
  override readonly name = 'TrialEnded'
}

const NOTHING: { payments: readonly DetectedPayment[]; refunds: readonly DetectedRefund[] } = {
  payments: [],
  refunds: [],
}
