import type { ChainConfig } from '../chains/chains-file.ts'
import { configuredAddresses } from '../chains/configured-addresses.ts'
import type { Account } from '../domain/account.ts'
import { type Address, addressFamily } from '../domain/address.ts'
import { given } from '../domain/collections.ts'
import { explainReceiver, requireAddress, requireNote } from '../domain/require-input.ts'
import { readAll } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { actorOf, type Changer } from '../store/audit-repository.ts'
import type {
  RefundWallet,
  RefundWalletRepository,
  WalletChange,
  WalletCounts,
} from './sql/refund-wallet-repository.ts'

/** A wallet that a caller registers. */
export interface WalletInput {
  readonly address: string
  readonly note?: string | undefined
}

export type RefundWallets = ReturnType<typeof createRefundWallets>

/** Merchants have a few wallets, and detection reads all of them for each event. */
const MAX_WALLETS = 100
/** Removed wallets included, because their rows stay. */
const MAX_REGISTRATIONS = 1_000

/**
 * Creates the service of the wallets from which accounts refund, besides the payees of their requests. A payment from a wallet counts as a refund
 * only after the wallet's registration, so that nobody can turn an old payment into a refund.
 */
export function createRefundWallets(options: {
  readonly repository: RefundWalletRepository
  readonly chains: readonly ChainConfig[]
  readonly now: () => Date
}) {
  const { repository, chains, now } = options
  const changeBy = (by: Changer): WalletChange => ({ ...actorOf(by), at: now() })
  return {
    /**
     * Registers a wallet. A registered wallet stays as it is, except for a given note.
     *
     * @throws WaybillError INVALID_ADDRESS, INVALID_REFUND_WALLET, INVALID_FIELD, TOO_MANY_WALLETS
     */
    async add(account: Account, { address, note }: WalletInput, by: Changer, signal?: AbortSignal) {
      const wallet = readAll({
        address: () => parseWallet(address, chains),
        note: () => given(note, (text) => requireNote('note', text)),
      })
      return repository.add(account, wallet, changeBy(by), refuseTooMany, signal)
    },
    /** In the order of their registration. */
    list: (account: Account, includeRemoved: boolean, signal?: AbortSignal) =>
      repository.list(account, includeRemoved, signal),
    /** @throws WaybillError INVALID_ADDRESS, WALLET_NOT_FOUND */
    async remove(account: Account, text: string, by: Changer, signal?: AbortSignal): Promise<RefundWallet> {
      const removed = await repository.remove(account, requireAddress('address', text), changeBy(by), signal)
      if (removed === undefined) throw waybillError('WALLET_NOT_FOUND', { value: text })
      return removed
    },
  }
}

function parseWallet(text: string, chains: readonly ChainConfig[]): Address {
  const address = requireAddress('address', text)
  const fail = (detail: string) => waybillError('INVALID_REFUND_WALLET', { field: 'address', value: text, detail })
  if (addressFamily(address) !== 'EVM') throw fail('refunds are found on EVM chains alone')
  const detail = explainReceiver(address)
  if (detail !== undefined) throw fail(detail)
  for (const chain of chains) {
    const named = configuredAddresses(chain).get(address)
    if (named !== undefined) throw fail(`it is ${named} of ${chain.name}`)
  }
  return address
}

function refuseTooMany({ inForce, ever }: WalletCounts): void {
  const detail =
    inForce >= MAX_WALLETS
      ? `the account has ${MAX_WALLETS}`
      : `wallets were registered ${MAX_REGISTRATIONS} times for the account`
  if (inForce >= MAX_WALLETS || ever >= MAX_REGISTRATIONS) throw waybillError('TOO_MANY_WALLETS', { detail })
}
