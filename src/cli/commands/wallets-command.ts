import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { formatAddress } from '../../domain/address.ts'
import { createRefundWallets, type RefundWallets } from '../../requests/refund-wallets.ts'
import { createRefundWalletRepository, type RefundWallet } from '../../requests/sql/refund-wallet-repository.ts'
import { type Command, EXIT_GOOD, parseAccountName, writeList } from '../shared/command.ts'
import { readChainsToWrite } from '../shared/read-chains.ts'
import { asUsage, STORE_VARIABLES, withAccount } from '../shared/with-store.ts'

const account = { '--account A': 'account that refunds from the wallet' }
const address = { ADDRESS: 'the wallet: 0x and 40 hexadecimal digits' }

/** `wallets add ADDRESS --account A`: writes the wallet as registered. */
const walletsAdd: Command = {
  path: ['wallets', 'add'],
  summary:
    'Register a wallet from which an account refunds, in addition to the payees of its requests. From then on, what it sends ' +
    'under the references of the account counts as a refund, on every chain.',
  takes: { ...address, ...account, '[--note TEXT]': 'a note of up to 256 characters' },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ positionals: [text = ''], options }, context) {
    const name = parseAccountName(options.account)
    const known = await readChainsToWrite(context)
    return withAccount(context, name, async (knex, found) => {
      const wallet = { address: text, note: options.note }
      const added = await asUsage(walletsOf(knex, known).add(found, wallet, { actor: context.actor }))
      context.stdout.write(`${lineOf(added)}\n`)
      return EXIT_GOOD
    })
  },
}

/** `wallets list --account A`: one line a wallet, columns separated by tabs. */
const walletsList: Command = {
  path: ['wallets', 'list'],
  summary: 'List the refund wallets of an account: address, time of registration, state, note.',
  takes: { ...account, '[--removed]': 'list removed wallets too' },
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const name = parseAccountName(options.account)
    return withAccount(context, name, async (knex, found) => {
      const wallets = await walletsOf(knex, []).list(found, options.removed !== undefined)
      writeList(context, wallets.map(lineOf), 'wallet')
      return EXIT_GOOD
    })
  },
}

/** `wallets remove ADDRESS --account A`: writes the removed wallet. */
const walletsRemove: Command = {
  path: ['wallets', 'remove'],
  summary: 'Remove a refund wallet of an account. The refunds that it has sent stay refunds.',
  takes: { ...address, ...account },
  environment: STORE_VARIABLES,
  async run({ positionals: [text = ''], options }, context) {
    const name = parseAccountName(options.account)
    return withAccount(context, name, async (knex, found) => {
      const removed = await asUsage(walletsOf(knex, []).remove(found, text, { actor: context.actor }))
      context.stdout.write(`${lineOf(removed)}\n`)
      return EXIT_GOOD
    })
  },
}

export const commands: readonly Command[] = [walletsAdd, walletsList, walletsRemove]

function walletsOf(knex: Knex, chains: readonly ChainConfig[]): RefundWallets {
  return createRefundWallets({ repository: createRefundWalletRepository(knex), chains, now: () => new Date() })
}

function lineOf({ address: wallet, registeredAt, removedAt, note = '' }: RefundWallet): string {
  const state = removedAt === undefined ? 'registered' : `removed ${removedAt.toISOString()}`
  return [formatAddress(wallet), registeredAt.toISOString(), state, note].join('\t')
}
