import type { Account } from '../../domain/account.ts'
import { formatAddress } from '../../domain/address.ts'
import { createRefundWallets, type RefundWallets } from '../../requests/refund-wallets.ts'
import { createRefundWalletRepository, type RefundWallet } from '../../requests/sql/refund-wallet-repository.ts'
import { type Command, type CommandContext, type CommandInput, EXIT_GOOD, writeList } from '../shared/command.ts'
import { readChainsToWrite } from '../shared/read-chains.ts'
import { asUsage, STORE_VARIABLES, withAccount } from '../shared/with-store.ts'

const account = { '--account A': 'account that refunds from the wallet' }
const address = { ADDRESS: 'the wallet: 0x and 40 hexadecimal digits' }

/** A command that does something with the wallets of an account. */
function walletsCommand(
  name: string,
  act: (wallets: RefundWallets, found: Account, input: CommandInput, context: CommandContext) => Promise<void>,
  {
    knownChains = async () => [],
    ...more
  }: Pick<Command, 'summary' | 'takes'> & { knownChains?: typeof readChainsToWrite },
): Command {
  return {
    path: ['wallets', name],
    environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
    ...more,
    async run(input, context) {
      const chains = await knownChains(context)
      return withAccount(context, input.options.account, async (knex, found) => {
        const repository = createRefundWalletRepository(knex)
        const wallets = createRefundWallets({ repository, chains, now: () => new Date() })
        await asUsage(act(wallets, found, input, context))
        return EXIT_GOOD
      })
    },
  }
}

export const commands: readonly Command[] = [
  walletsCommand(
    'add',
    async (wallets, found, { positionals: [text = ''], options: { note } }, { stdout, actor }) =>
      void stdout.write(`${lineOf(await wallets.add(found, { address: text, note }, { actor }))}\n`),
    {
      summary:
        'Register a wallet from which an account refunds, in addition to the payees of its requests. From then on, what it sends ' +
        'under the references of the account counts as a refund, on every chain.',
      takes: { ...address, ...account, '[--note TEXT]': 'a note of up to 256 characters' },
      knownChains: readChainsToWrite,
    },
  ),
  walletsCommand(
    'list',
    async (wallets, found, { options: { removed } }, context) =>
      writeList(context, (await wallets.list(found, removed !== undefined)).map(lineOf), 'wallet'),
    {
      summary: 'List the refund wallets of an account: address, time of registration, state, note.',
      takes: { ...account, '[--removed]': 'list removed wallets too' },
    },
  ),
  walletsCommand(
    'remove',
    async (wallets, found, { positionals: [text = ''] }, { stdout, actor }) =>
      void stdout.write(`${lineOf(await wallets.remove(found, text, { actor }))}\n`),
    {
      summary: 'Remove a refund wallet of an account. The refunds that it has sent stay refunds.',
      takes: { ...address, ...account },
    },
  ),
]

function lineOf({ address: wallet, registeredAt, removedAt, note = '' }: RefundWallet): string {
  const state = removedAt === undefined ? 'registered' : `removed ${removedAt.toISOString()}`
  return [formatAddress(wallet), registeredAt.toISOString(), state, note].join('\t')
}
