import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { inTransaction, runCancellable } from '../../postgres/cancellable.ts'
import { type AuditEntry, insertAuditEntry } from '../../store/audit-repository.ts'
import { lockAccount } from '../../store/payment-changes.ts'

/** A wallet from which an account refunds. */
export interface RefundWallet {
  readonly address: Address
  readonly registeredAt: Date
  /** Refunds after it do not count. Earlier ones stay. */
  readonly removedAt?: Date | undefined
  readonly note?: string | undefined
}

/** Who changes wallets, and when. */
export interface WalletChange extends Pick<AuditEntry, 'actor' | 'keyId'> {
  readonly at: Date
}

/** How many registrations an account has. */
export interface WalletCounts {
  readonly inForce: number
  /** Removed ones included. */
  readonly ever: number
}

export type RefundWalletRepository = ReturnType<typeof createRefundWalletRepository>

interface Row {
  readonly account_id: number
  readonly address: Buffer
  /** Counts how often the address was registered. */
  readonly registration: number
  readonly registered_at: Date
  readonly removed_at: Date | null
  readonly note: string | null
}

/** Creates the repository of refund wallets. Every call is scoped to one account. Every change is written to the audit log in the same transaction. */
export function createRefundWalletRepository(knex: Knex) {
  return {
    /**
     * Registers a wallet, or returns the current registration, with the new note where one is given.
     *
     * @param refuse - called before a new registration; when it throws, nothing is stored
     */
    add: (
      account: Account,
      { address, note }: Pick<RefundWallet, 'address' | 'note'>,
      change: WalletChange,
      refuse: (counts: WalletCounts) => void,
      signal?: AbortSignal,
    ): Promise<RefundWallet> =>
      inTransaction(knex, signal, async (trx) => {
        await lockAccount(trx, account.id, change.at)
        const ofAddress = { account_id: account.id, address: addressToBytes(address) }
        const stored = await trx<Row>('refund_wallets').where(ofAddress).whereNull('removed_at').first()
        if (stored !== undefined && (note === undefined || note === stored.note)) return fromRow(stored)
        if (stored === undefined) refuse(await countWallets(trx, account))
        const row = {
          ...ofAddress,
          registration: stored?.registration ?? (await trx('refund_wallets').where(ofAddress)).length + 1,
          registered_at: stored?.registered_at ?? change.at,
          removed_at: null,
          note: note ?? null,
        }
        await trx('refund_wallets').insert(row).onConflict(['account_id', 'address', 'registration']).merge(['note'])
        const details = { address, note }
        await insertAuditEntry(trx, { ...change, action: 'ADD_WALLET', account: account.name, details })
        return fromRow(row)
      }),
    /** In the order of their registration. */
    async list(account: Account, includeRemoved: boolean, signal?: AbortSignal): Promise<RefundWallet[]> {
      const query = knex<Row>('refund_wallets')
        .where({ account_id: account.id })
        .whereRaw(includeRemoved ? 'true' : 'removed_at is null')
        .orderBy(['registered_at', 'address', 'registration'])
      const rows = await runCancellable(knex, query, signal)
      return rows.map(fromRow)
    },
    /** @returns undefined when the wallet is not registered */
    remove: (
      account: Account,
      address: Address,
      change: WalletChange,
      signal?: AbortSignal,
    ): Promise<RefundWallet | undefined> =>
      inTransaction(knex, signal, async (trx) => {
        const [row] = await trx<Row>('refund_wallets')
          .where({ account_id: account.id, address: addressToBytes(address) })
          .whereNull('removed_at')
          .update({ removed_at: change.at })
          .returning('*')
        if (row === undefined) return undefined
        await insertAuditEntry(trx, { ...change, action: 'REMOVE_WALLET', account: account.name, details: { address } })
        return fromRow(row)
      }),
  }
}

async function countWallets(trx: Knex, account: Account): Promise<WalletCounts> {
  const { rows } = await trx.raw<{ rows: [{ ever: bigint; in_force: bigint }] }>(
    'select count(*) as ever, count(*) filter (where removed_at is null) as in_force from refund_wallets where account_id = ?',
    [account.id],
  )
  return { inForce: Number(rows[0].in_force), ever: Number(rows[0].ever) }
}

function fromRow({ address, registered_at, removed_at, note }: Omit<Row, 'account_id' | 'registration'>): RefundWallet {
  return {
    address: addressFromBytes(address),
    registeredAt: registered_at,
    removedAt: removed_at ?? undefined,
    note: note ?? undefined,
  }
}
