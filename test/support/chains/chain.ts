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
import { type DemoPayment, encodePayment } from '../../../demo/history/planned-payment.ts'
import { startAnvil } from '../../../demo/network/anvil.ts'
import {
  assertSucceeded,
  type ChainClient,
  createChainClient,
  deployContracts,
  type Receipt,
  type SendOptions,
} from '../../../demo/network/chain-client.ts'
import { describeChain } from '../../../demo/network/chain-config.ts'
import {
  type ContractCall,
  encodeApprove,
  encodeBalanceOf,
  encodeCreation,
  encodeMint,
  encodeSetFeed,
  MAX_UINT256,
} from '../../../demo/network/demo-contracts.ts'
import {
  type ChainSpec,
  type Deployed,
  type DeployedContracts,
  type DeployedToken,
  planDeployment,
  type TokenBehaviour,
} from '../../../demo/network/deployment.ts'
import { toQuantity } from '../../../demo/network/rpc.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
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

/** A conversion may omit `maxToSpend`; it is then the present rate plus one percent. */
export type TestPayment =
  | Extract<DemoPayment, { kind: 'ERC20' | 'NATIVE' }>
  | (Omit<Extract<DemoPayment, { kind: 'ERC20_CONVERSION' }>, 'maxToSpend'> & { maxToSpend?: bigint })
  | (Omit<Extract<DemoPayment, { kind: 'NATIVE_CONVERSION' }>, 'maxToSpend'> & { maxToSpend?: bigint })

export interface TestToken extends DeployedToken {}

/** When `pay` resolves before the block is mined, only the hash is present. */
export type Paid = { transactionHash: Hex } & Partial<Receipt>

export interface TestChain {
  rpcUrl: string
  /** The node's process. */
  pid: number
  chainId: number
  client: ChainClient
  contracts: DeployedContracts
  native: { symbol: string; feed: Address; conversionHash: Address }
  tokens: { USDC: TestToken; USDT: TestToken; DAI: TestToken; TAX: TestToken }
  /** All contracts of the chain. */
  deployed: Deployed
  /** Deploys, mints and owns the feeds; not among `wallets`. */
  deployer: Address
  /** The chain as a chains file describes it. */
  config(options?: { name?: string; finalityDepth?: number }): ChainConfig
  /** 19 unlocked accounts with 10,000 coins each and no tokens. */
  wallets: readonly [Address, Address, Address, Address, Address, Address, ...Address[]]
  /** Mines blocks, one by default. @returns the head's number */
  mine(options?: { blocks?: number; timestampSec?: number; baseFeePerGas?: bigint }): Promise<bigint>
  /** Sets the base fee of the next block, in wei; later blocks adjust it from there. */
  setBaseFee(wei: bigint): Promise<void>
  fund(token: { address: Address }, to: Address, amount: bigint): Promise<void>
  setNativeBalance(of: Address, wei: bigint): Promise<void>
  balanceOf(token: { address: Address }, of: Address): Promise<bigint>
  allowance(token: { address: Address }, owner: Address, spender: Address): Promise<bigint>
  nativeBalance(of: Address): Promise<bigint>
  approve(owner: Address, token: { address: Address }, spender: Address, amount: bigint): Promise<void>
  /** Approves what the proxy pulls if too little is allowed, then pays. @throws Error when it was reverted */
  pay(payer: Address, payment: TestPayment, options?: SendOptions): Promise<Paid>
  /** Several payments in one transaction of a batching contract, to which the tokens are minted first. */
  payInOneTransaction(payer: Address, payments: readonly TestPayment[]): Promise<Paid>
  /** Sends from an unlocked account or, with `sendAs`, from any address. Resolves like `pay`. */
  send(from: Address, call: ContractCall | { data: Hex }, options?: SendOptions): Promise<Paid>
  sendAs(from: Address, call: ContractCall): Promise<Paid>
  receipt(hash: Hex): Promise<Receipt | undefined>
  deployToken(token: { symbol: string; decimals: number; behaviour?: TokenBehaviour }): Promise<{ address: Address }>
  /** A contract that emits the fee proxy's event but moves no tokens. Pay "through" it with `proxy`. */
  deployLookAlikeProxy(): Promise<Address>
  /** A second genuine proxy, for a chains file with several versions. */
  deployErc20FeeProxy(): Promise<Address>
  /** Writes a round. `updatedAtSec` in the past makes the feed stale; by default it is the block's time. */
  setFeed(feed: Address, round: { answer: bigint; updatedAtSec?: number }): Promise<void>
  /**
   * Replaces the last `depth` blocks by others. The transactions in `keep` are mined again with the same hash, each in the new block at
   * its offset (0 is the first). Other transactions are dropped for good.
   */
  reorg(depth: number, keep?: readonly { hash: Hex; offset?: number }[]): Promise<void>
  stop(): Promise<void>
}

interface TestChainOptions {
  /** Private; 31337 by default. */
  chainId?: number
  /** Whether `pay` and `send` mine their transaction at once, in a block of its own; true by default. */
  automine?: boolean
  /** Two chains with different seeds have tokens at different addresses. */
  addressSeed?: number
  genesisTimeSec?: number
  /** Base fee of the next block, wei. */
  baseFeePerGas?: bigint
  /** Also deploys the demo's bridge, with the last of `wallets` as its relayer. */
  bridge?: boolean
  /** Replaces parts of the usual tokens and prices. */
  spec?: Partial<ChainSpec>
}

/** Starts a chain of its own, with contracts. Stop it in `afterAll`; it also dies with the process. */
export async function startTestChain(options: TestChainOptions = {}): Promise<TestChain> {
  const { chainId = 31_337, automine = true, genesisTimeSec } = options
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
  const deployed = await deployOn(client, { deployer, relayer: options.bridge ? wallets.at(-1) : undefined }, options)
  const ground: Ground = { client, deployed, deployer, automine }
  const setBaseFee = async (wei: bigint): Promise<void> => {
    await rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(wei)])
  }
  if (options.baseFeePerGas !== undefined) await setBaseFee(options.baseFeePerGas)

  return {
    rpcUrl: anvil.rpcUrl,
    pid: anvil.pid,
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
    setBaseFee,
    ...balancesOf(ground),
    ...paymentsOn(ground),
    ...deploymentsOn(ground),
    ...blocksOf(client),
    receipt: (hash) => client.receipt(hash),
    stop: () => anvil.stop(),
  }
}

/** What the helpers below work on. */
interface Ground {
  readonly client: ChainClient
  readonly deployed: Deployed
  readonly deployer: Address
  readonly automine: boolean
}

async function deployOn(
  client: ChainClient,
  { deployer, relayer }: { deployer: Address; relayer: Address | undefined },
  { addressSeed = 0, spec }: TestChainOptions,
): Promise<Deployed> {
  const { timestampSec } = await client.head()
  const plan = planDeployment(
    { ...SPEC, addressSeed, ...spec },
    { deployer, ...(relayer && { relayer }) },
    timestampSec,
  )
  return deployContracts(client, plan, { deployer })
}

async function mineOne(client: ChainClient, hash: Hex): Promise<Receipt> {
  await client.mine()
  return assertSucceeded(client, hash)
}

async function sendOn(
  { client, automine }: Ground,
  from: Address,
  call: ContractCall | { data: Hex },
  options?: SendOptions,
): Promise<Paid> {
  const hash = await client.send(from, call, options)
  return automine ? mineOne(client, hash) : { transactionHash: hash }
}

/** Sends a transaction that prepares a test: it is mined at once, even where the test mines by hand. */
async function arrange({ client }: Ground, from: Address, call: ContractCall | { data: Hex }): Promise<Receipt> {
  return mineOne(client, await client.send(from, call, { gas: 5_000_000n }))
}

async function readAmount({ client }: Ground, call: ContractCall): Promise<bigint> {
  return BigInt(await client.read(call))
}

function balancesOf(ground: Ground) {
  const { rpc } = ground.client
  return {
    async fund(token, to, amount) {
      await arrange(ground, ground.deployer, encodeMint(token.address, to, amount))
    },
    async setNativeBalance(of, wei) {
      await rpc.call('anvil_setBalance', [of, toQuantity(wei)])
    },
    balanceOf: (token, of) => readAmount(ground, encodeBalanceOf(token.address, of)),
    allowance: (token, owner, spender) => readAmount(ground, encodeAllowance(token.address, owner, spender)),
    nativeBalance: async (of) => BigInt(await rpc.call<Hex>('eth_getBalance', [of, 'latest'])),
    async approve(owner, token, spender, amount) {
      await arrange(ground, owner, encodeApprove(token.address, spender, amount))
    },
  } satisfies Partial<TestChain>
}

function paymentsOn(ground: Ground) {
  const { client, deployed } = ground
  return {
    async pay(payer, payment, options) {
      const full = await completePayment(ground, payment)
      await approvePayment(ground, payer, full)
      return sendOn(ground, payer, encodePayment(deployed, full), options)
    },
    async payInOneTransaction(payer, payments) {
      const calls: ContractCall[] = []
      for (const payment of payments) calls.push(...(await batchPayment(ground, payment)))
      const batch = encodeBatch(deployed.contracts.paymentBatch, calls)
      return sendOn(ground, payer, batch, { gas: 500_000n * BigInt(calls.length) })
    },
    send: (from, call, options) => sendOn(ground, from, call, options),
    async sendAs(from, call) {
      await client.rpc.call('anvil_impersonateAccount', [from])
      return sendOn(ground, from, call)
    },
  } satisfies Partial<TestChain>
}

/** Adds what a conversion may spend at most: the present rate and one percent. */
async function completePayment({ client, deployed }: Ground, payment: TestPayment): Promise<DemoPayment> {
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

/** The most that leaves the payer, in base units of what is paid. */
function maxSpent(payment: DemoPayment): bigint {
  return 'maxToSpend' in payment ? payment.maxToSpend : payment.amount + (payment.feeAmount ?? 0n)
}

/** Approves what the proxy will pull where too little is allowed. A Tether-like token must be set to zero first. */
async function approvePayment(ground: Ground, payer: Address, payment: DemoPayment): Promise<void> {
  const pulled = spenderOf(ground.deployed, payment)
  if (pulled === undefined) return
  const { token, spender } = pulled
  const allowed = await readAmount(ground, encodeAllowance(token, payer, spender))
  const needed = maxSpent(payment)
  if (allowed >= needed) return
  const isTether = ground.deployed.tokens.find(({ address }) => address === token)?.behaviour === 'TETHER'
  if (allowed > 0n && isTether) await arrange(ground, payer, encodeApprove(token, spender, 0n))
  await arrange(ground, payer, encodeApprove(token, spender, needed))
}

/** The calls by which the batching contract makes a payment, from tokens that are minted to it. */
async function batchPayment(ground: Ground, payment: TestPayment): Promise<ContractCall[]> {
  const { deployed, deployer } = ground
  const full = await completePayment(ground, payment)
  const paid = encodePayment(deployed, full)
  const pulled = spenderOf(deployed, full)
  if (pulled === undefined) return [paid]
  const { token, spender } = pulled
  await arrange(ground, deployer, encodeMint(token, deployed.contracts.paymentBatch, maxSpent(full)))
  return [encodeApprove(token, spender, 0n), encodeApprove(token, spender, MAX_UINT256), paid]
}

function deploymentsOn(ground: Ground) {
  const { client, deployer } = ground
  const deploy = async (data: Hex): Promise<Address> => {
    const { transactionHash } = await arrange(ground, deployer, { data })
    const receipt = await client.rpc.call<{ contractAddress: Address }>('eth_getTransactionReceipt', [transactionHash])
    return getAddress(receipt.contractAddress)
  }
  return {
    async deployToken({ symbol, decimals, behaviour = 'PLAIN' }) {
      const contract = { PLAIN: 'DemoToken', TETHER: 'TetherLikeToken', FEE_ON_TRANSFER: 'FeeOnTransferToken' } as const
      return { address: await deploy(encodeCreation(contract[behaviour], [symbol, symbol, decimals])) }
    },
    deployLookAlikeProxy: () => deploy(encodeCreation('LookAlikeProxy')),
    deployErc20FeeProxy: () => deploy(encodeCreation('ERC20FeeProxy')),
    async setFeed(feed, { answer, updatedAtSec }) {
      await arrange(ground, deployer, encodeSetFeed(feed, answer, updatedAtSec))
    },
  } satisfies Partial<TestChain>
}

function blocksOf(client: ChainClient) {
  const { rpc } = client
  return {
    async mine({ blocks = 1, ...block } = {}) {
      for (let mined = 1; mined < blocks; mined++) await client.mine()
      return client.mine(block)
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
  } satisfies Partial<TestChain>
}
