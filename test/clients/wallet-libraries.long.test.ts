import { BrowserProvider, Wallet as Ethers6Wallet } from 'ethers'
import { ethers as ethers5 } from 'ethers5'
import { createWalletClient, custom, type EIP1193RequestFn, type Hex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { anvil } from 'viem/chains'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { PreparedTransaction } from '../../src/domain/route.ts'
import { startAnvilNode, type TestNode } from '../support/chains/nodes.ts'
import { deployForPayers, type PayersChain, receiptOf, unusedAddress } from '../support/chains/payers-chain.ts'
import { canonical, createTestRouting } from '../support/routing.ts'

let node: TestNode
let chain: PayersChain
beforeAll(async () => {
  node = await startAnvilNode()
  chain = await deployForPayers(node)
})
afterAll(() => node.stop())

/** The provider of a browser wallet, by EIP-1193. */
const provider = {
  request: (async ({ method, params }: { method: string; params?: unknown[] }) =>
    node.rpc.call(method, params ?? [])) as EIP1193RequestFn,
}

interface Payer {
  readonly key: Hex
  readonly account: PrivateKeyAccount
}

/** Sends one transaction with a library. @returns its hash */
type Send = (transaction: PreparedTransaction, payer: Payer) => Promise<string>

/** Each library with a key in the provider, and with a key of its own. */
const ways: [string, Send][] = [
  ['a plain provider', (tx) => provider.request({ method: 'eth_sendTransaction', params: [tx as never] })],
  [
    'viem with a provider',
    (tx) => {
      const wallet = createWalletClient({ transport: custom(provider) })
      return wallet.request({ method: 'eth_sendTransaction', params: [tx as never] })
    },
  ],
  [
    'viem with a key',
    ({ to, data, value, gas }, { account }) => {
      const wallet = createWalletClient({ account, chain: anvil, transport: custom(provider) })
      return wallet.sendTransaction({
        to: to as Hex,
        data,
        value: BigInt(value),
        ...(gas === undefined ? {} : { gas: BigInt(gas) }),
      })
    },
  ],
  ['ethers 6 with a provider', (tx) => new BrowserProvider(provider).send('eth_sendTransaction', [tx])],
  [
    'ethers 6 with a key',
    async ({ gas, ...tx }, { key }) => {
      const wallet = new Ethers6Wallet(key, new BrowserProvider(provider))
      const { hash } = await wallet.sendTransaction({ ...tx, ...(gas === undefined ? {} : { gasLimit: gas }) })
      return hash
    },
  ],
  [
    'ethers 5 with a provider',
    (tx) => new ethers5.providers.Web3Provider(provider as never).send('eth_sendTransaction', [tx]),
  ],
  [
    'ethers 5 with a key',
    async ({ gas, chainId, ...tx }, { key }) => {
      const wallet = new ethers5.Wallet(key, new ethers5.providers.Web3Provider(provider as never))
      const limit = gas === undefined ? {} : { gasLimit: gas }
      const { hash } = await wallet.sendTransaction({ ...tx, ...limit, chainId: Number(chainId) })
      return hash
    },
  ],
]

it.each(ways)('%s sends the prepared transactions unchanged', async (name, send) => {
  const key = generatePrivateKey()
  const account = privateKeyToAccount(key)
  await node.rpc.call('anvil_setBalance', [account.address, '0x8ac7230489e80000'])
  await node.rpc.call('anvil_impersonateAccount', [account.address])
  const usdt = chain.token('USDT')
  await chain.fund(usdt, account.address, 10n ** 12n)
  const payee = unusedAddress(`payee of ${name}`)
  const routing = createTestRouting([chain.config])
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const terms = { payee: canonical(payee), amount: '12.5', network: 'ETHEREUM', ...currency }
  const question = { paymentReference: routing.addRequest(terms), wallet: account.address }
  const { transactions } = await routing.prepare({ ...question, chain: 'ETHEREUM', token: 'USDT' })
  expect(transactions.length).toBe(4)
  for (const transaction of transactions) {
    const receipt = await receiptOf(node.rpc, (await send(transaction, { key, account })) as Hex)
    expect(BigInt(receipt.status)).toBe(1n)
    const sent = await node.rpc.call<{ gas: Hex; input: Hex; from: string }>('eth_getTransactionByHash', [
      receipt.transactionHash,
    ])
    expect([sent.gas, sent.input, sent.from]).toEqual([
      transaction.gas,
      transaction.data,
      account.address.toLowerCase(),
    ])
  }
  expect(await chain.holding(payee, chain.token('USDC'))).toBe(12_500_000n)
})

it.each(ways.filter(([name]) => name.includes('key')))(
  '%s sends them all with exactly the coins that a remedy names',
  async (name, send) => {
    const key = generatePrivateKey()
    const account = privateKeyToAccount(key)
    await chain.fund(chain.token('USDT'), account.address, 10n ** 12n)
    // Unless the base fee is far above it, the fixed tip of ethers 5 decides what it demands.
    await node.rpc.call('anvil_setNextBlockBaseFeePerGas', ['0x1dcd65000'])
    await node.rpc.call('evm_mine')
    const routing = createTestRouting([chain.config])
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const payee = canonical(unusedAddress(`payee of exactly ${name}`))
    const terms = { payee, amount: '12.5', network: 'ETHEREUM', ...currency }
    const question = { paymentReference: routing.addRequest(terms), wallet: account.address }
    const { routes } = await routing.find({ ...question, tokens: ['USDT'] })
    const warning = routes[0]?.warnings.find(({ reason }) => reason === 'INSUFFICIENT_GAS')?.message ?? ''
    const [, missing = ''] = /; add ([\d.]+) ETH/.exec(warning) ?? []
    await node.rpc.call('anvil_setBalance', [account.address, `0x${parseAmount(missing, 18)?.toString(16)}`])
    const { transactions, route } = await routing.prepare({ ...question, chain: 'ETHEREUM', token: 'USDT' })
    expect([transactions.length, route.readiness.hasEnoughGas]).toEqual([4, true])
    for (const transaction of transactions) {
      const receipt = await receiptOf(node.rpc, (await send(transaction, { key, account })) as Hex)
      expect(BigInt(receipt.status)).toBe(1n)
    }
  },
)
