/**
 * A real chain for a test: an anvil process with Request's payment contracts, tokens and price feeds, up in well under a
 * second. How to use it:
 *
 *   const chain = await startTestChain()                       // each helper below mines what it sent, in its own block
 *   afterAll(() => chain.stop())
 *   const [payer, payee] = chain.wallets                       // funded with coins; unlocked in the node
 *   const { USDC } = chain.tokens                              // { address, decimals, feed, … }; also USDT (Tether-like),
 *   await chain.fund(USDC, payer, 500_000000n)                 // DAI, and TAX (takes 1 % of each transfer)
 *   const paid = await chain.pay(payer, { kind: 'ERC20', token: USDC.address, to: payee, amount: 100_000000n,
 *     paymentReference: '0x…8 bytes', feeAmount: 1n, feeAddress: … })            // approves what is needed, then pays
 *   paid.transactionHash, paid.blockNumber, paid.gasUsed, paid.logs
 *
 * Other kinds: NATIVE (`exact: false` for the older function), ERC20_CONVERSION, NATIVE_CONVERSION (amount in USD with
 * 8 decimals; `maxToSpend` may be left out). With `startTestChain({ automine: false })` nothing is mined but by
 * `mine()`, and `pay` resolves when the transaction waits: take its `transactionHash`, mine, then `receipt`. The node
 * itself never mines: a transaction that a test sends past these helpers waits for `mine()` either way.
 * Also: setBaseFee, setFeed (make it stale with updatedAtSec), deployToken (a fake USDC), deployLookAlikeProxy,
 * payInOneTransaction (several payments, one hash), reorg (drop the last blocks, keep some transactions), sendAs (any
 * address), allowance, balanceOf, nativeBalance. Code under test is given `config({ name, finalityDepth })`, the chain as a
 * chains file describes it, or `rpcUrl`. Addresses here are in EIP-55, in `config()` they are canonical (lower case).
 */

import { type Address, getAddress, type Hex } from 'viem'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { type DemoPayment, encodePayment } from '../../../src/demo/history/encode-payment.ts'
import { startAnvil } from '../../../src/demo/network/anvil.ts'
import {
  assertSucceeded,
  type ChainClient,
  createChainClient,
  deployContracts,
  type Receipt,
  type SendOptions,
} from '../../../src/demo/network/chain-client.ts'
import { describeChain } from '../../../src/demo/network/chain-config.ts'
import {
  type ContractCall,
  encodeApprove,
  encodeBalanceOf,
  encodeCreation,
  encodeMint,
  encodeSetFeed,
  MAX_UINT256,
} from '../../../src/demo/network/demo-contracts.ts'
import {
  type ChainSpec,
  type Deployed,
  type DeployedContracts,
  type DeployedToken,
  planDeployment,
  type TokenBehaviour,
} from '../../../src/demo/network/deployment.ts'
import { toQuantity } from '../../../src/demo/network/rpc.ts'
import { convertFiat, encodeAllowance, encodeBatch, spenderOf } from './contract-calls.ts'

const MNEMONIC = 'test test test test test test test test test test test junk'
const ACCOUNTS = 20
const USD = 10n ** 8n

const SPEC: ChainSpec = {
  native: { symbol: 'ETH', usdPrice: 3_000n * USD },
  tokens: [
    { symbol: 'USDC', name: 'USD Coin', decimals: 6, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'USDT', name: 'Tether USD', decimals: 6, behaviour: 'TETHER', usdPrice: USD },
    { symbol: 'DAI', name: 'Dai Stablecoin', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'TAX', name: 'Fee on transfer', decimals: 18, behaviour: 'FEE_ON_TRANSFER', usdPrice: USD },
  ],
  addressSeed: 0,
}

/** A conversion may leave out what it may spend: then it is the present rate and one percent. */
export type TestPayment =
  | Extract<DemoPayment, { kind: 'ERC20' | 'NATIVE' }>
  | (Omit<Extract<DemoPayment, { kind: 'ERC20_CONVERSION' }>, 'maxToSpend'> & { maxToSpend?: bigint })
  | (Omit<Extract<DemoPayment, { kind: 'NATIVE_CONVERSION' }>, 'maxToSpend'> & { maxToSpend?: bigint })

export interface TestToken extends DeployedToken {}

/** Where `pay` resolves before the block, all but the hash is absent. */
export type Paid = { transactionHash: Hex } & Partial<Receipt>

export interface TestChain {
  rpcUrl: string
  chainId: number
  client: ChainClient
  contracts: DeployedContracts
  native: { symbol: string; feed: Address; conversionHash: Address }
  tokens: { USDC: TestToken; USDT: TestToken; DAI: TestToken; TAX: TestToken }
  /** All that stands there. */
  deployed: Deployed
  /** Deploys, mints and owns the feeds; not among `wallets`. */
  deployer: Address
  /** The chain in the words of a chains file. */
  config(options?: { name?: string; finalityDepth?: number }): ChainConfig
  /** 19 unlocked accounts with 10,000 coins each and no tokens. */
  wallets: readonly [Address, Address, Address, Address, Address, Address, ...Address[]]
  /** Mines blocks, one unless told. @returns the head's number */
  mine(options?: { blocks?: number; timestampSec?: number; baseFeePerGas?: bigint }): Promise<bigint>
  /** Sets the base fee of the next block (wei); the blocks after it move on from there. */
  setBaseFee(wei: bigint): Promise<void>
  fund(token: { address: Address }, to: Address, amount: bigint): Promise<void>
  setNativeBalance(of: Address, wei: bigint): Promise<void>
  balanceOf(token: { address: Address }, of: Address): Promise<bigint>
  allowance(token: { address: Address }, owner: Address, spender: Address): Promise<bigint>
  nativeBalance(of: Address): Promise<bigint>
  approve(owner: Address, token: { address: Address }, spender: Address, amount: bigint): Promise<void>
  /** Approves what the proxy pulls where too little is allowed, then pays. @throws Error when it was reverted */
  pay(payer: Address, payment: TestPayment, options?: SendOptions): Promise<Paid>
  /** Several payments in one transaction, through a batching contract that the tokens are sent to first. */
  payInOneTransaction(payer: Address, payments: readonly TestPayment[]): Promise<Paid>
  /** Sends from an unlocked account or, with `sendAs`, from any address. Resolves as `pay` does. */
  send(from: Address, call: ContractCall | { data: Hex }, options?: SendOptions): Promise<Paid>
  sendAs(from: Address, call: ContractCall): Promise<Paid>
  receipt(hash: Hex): Promise<Receipt | undefined>
  deployToken(token: { symbol: string; decimals: number; behaviour?: TokenBehaviour }): Promise<{ address: Address }>
  /** A contract that emits the fee proxy's event and moves nothing. Pay "through" it with `proxy`. */
  deployLookAlikeProxy(): Promise<Address>
  /** A second genuine proxy, for a chains file with several versions. */
  deployErc20FeeProxy(): Promise<Address>
  /** Writes a round. `updatedAtSec` in the past makes the feed stale; absent is the block's time. */
  setFeed(feed: Address, round: { answer: bigint; updatedAtSec?: number }): Promise<void>
  /**
   * Replaces the last `depth` blocks by others. `keep` are transactions that are mined again, under the same hash, each
   * in the block that stands at its offset (0 is the first of the new blocks). The rest is dropped for good.
   */
  reorg(depth: number, keep?: readonly { hash: Hex; offset?: number }[]): Promise<void>
  stop(): Promise<void>
}

export interface TestChainOptions {
  /** Private; 31337 unless told. */
  chainId?: number
  /** true unless told: `pay` and `send` mine their transaction at once, in a block of its own. */
  automine?: boolean
  /** Two chains with different seeds have tokens at different addresses. */
  addressSeed?: number
  genesisTimeSec?: number
  /** Base fee of the next block, wei. */
  baseFeePerGas?: bigint
  /** The demo's bridge stands there as well; its relayer is the last of `wallets`. */
  bridge?: boolean
  /** What differs from the usual tokens and prices. */
  spec?: Partial<ChainSpec>
}

/** Starts a chain of its own, with contracts. Stop it in `afterAll`; it also dies with the process. */
export async function startTestChain(options: TestChainOptions = {}): Promise<TestChain> {
  const { chainId = 31_337, automine = true, addressSeed = 0, genesisTimeSec } = options
  const anvil = await startAnvil({
    chainId,
    automine: false,
    mnemonic: MNEMONIC,
    accounts: ACCOUNTS,
    ...(genesisTimeSec === undefined ? {} : { genesisTimeSec }),
  })
  const client = createChainClient(anvil.rpc)
  const { rpc } = client
  const [deployer, ...wallets] = (await rpc.call<Address[]>('eth_accounts')).map((address) => getAddress(address))
  if (deployer === undefined) throw new Error('anvil has no accounts')

  const startTimeSec = (await client.head()).timestampSec
  const relayer = options.bridge ? wallets.at(-1) : undefined
  const plan = planDeployment(
    { ...SPEC, addressSeed, ...options.spec },
    { deployer, ...(relayer && { relayer }) },
    startTimeSec,
  )
  const deployed = await deployContracts(client, plan, { deployer })

  const mineOne = async (hash: Hex): Promise<Receipt> => {
    await client.mine()
    return assertSucceeded(client, hash)
  }
  const send = async (from: Address, call: ContractCall | { data: Hex }, sendOptions?: SendOptions): Promise<Paid> => {
    const hash = await client.send(from, call, sendOptions)
    return automine ? mineOne(hash) : { transactionHash: hash }
  }
  /** For what prepares a test: mined at once, also where the test mines by hand. */
  const arrange = async (from: Address, call: ContractCall | { data: Hex }): Promise<Receipt> =>
    mineOne(await client.send(from, call, { gas: 5_000_000n }))
  const deploy = async (data: Hex): Promise<Address> => {
    const { transactionHash } = await arrange(deployer, { data })
    const receipt = await rpc.call<{ contractAddress: Address }>('eth_getTransactionReceipt', [transactionHash])
    return getAddress(receipt.contractAddress)
  }
  const readAmount = async (call: ContractCall): Promise<bigint> => BigInt(await client.read(call))
  const approve = async (owner: Address, token: Address, spender: Address, amount: bigint): Promise<void> => {
    await arrange(owner, encodeApprove(token, spender, amount))
  }
  const complete = async (payment: TestPayment): Promise<DemoPayment> => {
    if (payment.kind === 'ERC20' || payment.kind === 'NATIVE') return payment
    if (payment.maxToSpend !== undefined) return payment as DemoPayment
    const into = payment.kind === 'ERC20_CONVERSION' ? payment.token : deployed.native.conversionHash
    const { currencyHash } = payment
    const due = await convertFiat(client, deployed, {
      amount: payment.amount + (payment.feeAmount ?? 0n),
      into,
      ...(currencyHash === undefined ? {} : { currencyHash }),
    })
    return { ...payment, maxToSpend: (due * 101n) / 100n }
  }
  /** What leaves the payer at most, in base units of what is paid. */
  const mostSpent = (payment: DemoPayment): bigint =>
    'maxToSpend' in payment ? payment.maxToSpend : payment.amount + (payment.feeAmount ?? 0n)

  if (options.baseFeePerGas !== undefined) {
    await rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(options.baseFeePerGas)])
  }

  return {
    rpcUrl: anvil.rpcUrl,
    chainId,
    client,
    contracts: deployed.contracts,
    native: deployed.native,
    tokens: Object.fromEntries(deployed.tokens.map((token) => [token.symbol, token])) as TestChain['tokens'],
    deployed,
    deployer,
    config: ({ name = 'ETHEREUM', finalityDepth = 3 } = {}) =>
      describeChain({ name, chainId, finalityDepth }, anvil.rpcUrl, deployed),
    wallets: wallets as unknown as TestChain['wallets'],
    async mine({ blocks = 1, ...block } = {}) {
      for (let mined = 1; mined < blocks; mined++) await client.mine()
      return client.mine(block)
    },
    async setBaseFee(wei) {
      await rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(wei)])
    },
    async fund(token, to, amount) {
      await arrange(deployer, encodeMint(token.address, to, amount))
    },
    async setNativeBalance(of, wei) {
      await rpc.call('anvil_setBalance', [of, toQuantity(wei)])
    },
    balanceOf: (token, of) => readAmount(encodeBalanceOf(token.address, of)),
    allowance: (token, owner, spender) => readAmount(encodeAllowance(token.address, owner, spender)),
    nativeBalance: async (of) => BigInt(await rpc.call<Hex>('eth_getBalance', [of, 'latest'])),
    approve: (owner, token, spender, amount) => approve(owner, token.address, spender, amount),
    async pay(payer, payment, sendOptions) {
      const full = await complete(payment)
      const pulled = spenderOf(deployed, full)
      if (pulled) {
        const allowed = await readAmount(encodeAllowance(pulled.token, payer, pulled.spender))
        const isTether = deployed.tokens.find((token) => token.address === pulled.token)?.behaviour === 'TETHER'
        const needed = mostSpent(full)
        if (allowed < needed && allowed > 0n && isTether) await approve(payer, pulled.token, pulled.spender, 0n)
        if (allowed < needed) await approve(payer, pulled.token, pulled.spender, needed)
      }
      return send(payer, encodePayment(deployed, full), sendOptions)
    },
    async payInOneTransaction(payer, payments) {
      const { paymentBatch } = deployed.contracts
      const calls: ContractCall[] = []
      for (const payment of payments) {
        const full = await complete(payment)
        const pulled = spenderOf(deployed, full)
        if (pulled) {
          await arrange(deployer, encodeMint(pulled.token, paymentBatch, mostSpent(full)))
          calls.push(encodeApprove(pulled.token, pulled.spender, 0n))
          calls.push(encodeApprove(pulled.token, pulled.spender, MAX_UINT256))
        }
        calls.push(encodePayment(deployed, full))
      }
      return send(payer, encodeBatch(paymentBatch, calls), { gas: 500_000n * BigInt(calls.length) })
    },
    send,
    async sendAs(from, call) {
      await rpc.call('anvil_impersonateAccount', [from])
      return send(from, call)
    },
    receipt: (hash) => client.receipt(hash),
    async deployToken({ symbol, decimals, behaviour = 'PLAIN' }) {
      const contract = { PLAIN: 'DemoToken', TETHER: 'TetherLikeToken', FEE_ON_TRANSFER: 'FeeOnTransferToken' } as const
      return { address: await deploy(encodeCreation(contract[behaviour], [symbol, symbol, decimals])) }
    },
    deployLookAlikeProxy: () => deploy(encodeCreation('LookAlikeProxy')),
    deployErc20FeeProxy: () => deploy(encodeCreation('ERC20FeeProxy')),
    async setFeed(feed, { answer, updatedAtSec }) {
      await arrange(deployer, encodeSetFeed(feed, answer, updatedAtSec))
    },
    async reorg(depth, keep = []) {
      const again: [Hex, number][] = []
      for (const { hash, offset = 0 } of keep) {
        again.push([await rpc.call<Hex>('eth_getRawTransactionByHash', [hash]), offset])
      }
      const { timestampSec } = await client.head()
      await rpc.call('anvil_reorg', [depth, again])
      // Block time stays behind after a reorg, and later blocks would go on from there.
      await rpc.call('evm_setNextBlockTimestamp', [timestampSec + 1])
    },
    stop: () => anvil.stop(),
  }
}
