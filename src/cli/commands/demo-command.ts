import type { RunningDemo } from '../../../demo/running-demo.ts'
import type { Say } from '../../../demo/show/show-payments.ts'
import { readStoreConfig } from '../../config.ts'
import { addressFamily, parseAddress } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { type Command, type CommandContext, EXIT_GOOD, parseWhole, UsageError } from '../shared/command.ts'

/** `demo pay`: one line a fact, columns separated by tabs. */
const demoPay: Command = {
  path: ['demo', 'pay'],
  summary:
    'Pay a request of the running demo as one of its wallets. Shows each transaction, and the payment as search finds it.',
  takes: {
    '--wallet W': 'a wallet of demo.json, by name or address',
    '--route ID': 'id of the route to pay by; an unknown id lists the routes',
    '[--request REF]': 'payment reference (default: a new request like the first of demo.json)',
  },
  environment: ['DATA_DIR'],
  async run({ options }, context) {
    const demo = await findDemo(context)
    const { showPayment } = await import('../../../demo/show/show-payments.ts')
    const { wallet = '', route = '', request: paymentReference } = options
    await showPayment(demo, { wallet, route, paymentReference }, sayTo(context))
    return EXIT_GOOD
  },
}

/** `demo refund`: one line a fact, columns separated by tabs. */
const demoRefund: Command = {
  path: ['demo', 'refund'],
  summary:
    'Refund a payment of the running demo as its merchant would, from the payee through the fee proxy, and mine until that is final. ' +
    'Shows each transaction, and the payment once its status is REFUNDED.',
  takes: { '[--payment ID]': 'id of the payment to refund (default: a new payment of 5 USDC)' },
  environment: ['DATA_DIR'],
  async run({ options }, context) {
    const demo = await findDemo(context)
    const { showRefund } = await import('../../../demo/show/show-payments.ts')
    await showRefund(demo, options.payment, { say: sayTo(context), signal: context.signal })
    return EXIT_GOOD
  },
}

/** `demo fund`: one line a chain, columns separated by tabs. */
const demoFund: Command = {
  path: ['demo', 'fund'],
  summary:
    'Give an address 10,000 of each token on every chain of the running demo, and coins for gas. Shows what it then holds.',
  takes: {
    ADDRESS: 'a wallet of your own: 0x and 40 hexadecimal digits',
    '[--coins N]': 'what it has of each coin afterwards (default: 10); 0: no gas',
  },
  environment: ['DATA_DIR'],
  async run({ positionals: [address = ''], options: { coins = '10' } }, context) {
    const terms = { address: parseWallet(address), coins: BigInt(parseWhole('coins', coins, 0, 999_999)) }
    const demo = await findDemo(context)
    const { fundAddress } = await import('../../../demo/show/fund-address.ts')
    await fundAddress(demo, terms, { say: sayTo(context), signal: context.signal })
    return EXIT_GOOD
  },
}

export const commands: readonly Command[] = [demoPay, demoRefund, demoFund]

/** @throws UsageError */
function parseWallet(text: string): Hex {
  const parsed = parseAddress(text)
  if (parsed.ok && addressFamily(parsed.address) === 'EVM') return parsed.address as string as Hex
  const detail = parsed.ok ? 'it is of Tron' : parsed.detail
  throw new UsageError(`"${text}" is not an address of the demo's chains: ${detail}`)
}

async function findDemo({ environment, workingFolder, signal }: CommandContext): Promise<RunningDemo> {
  const { dataDir } = readStoreConfig(environment, workingFolder)
  const { findRunningDemo } = await import('../../../demo/running-demo.ts')
  return findRunningDemo(dataDir, signal)
}

function sayTo({ stdout }: CommandContext): Say {
  return (...columns) => void stdout.write(`${columns.join('\t')}\n`)
}
