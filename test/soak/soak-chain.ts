/**
 * A chain of the soak: an anvil with Request's contracts that only the soak mines, reorganizes, kills and starts again, so that it knows every
 * block that ever was canonical.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type Address, getAddress, type Hex, keccak256, toBytes } from 'viem'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { type Anvil, startAnvil } from '../../src/demo/network/anvil.ts'
import { type ChainClient, createChainClient, deployContracts } from '../../src/demo/network/chain-client.ts'
import { canonical, describeChain } from '../../src/demo/network/chain-config.ts'
import { type ContractCall, encodeCreation } from '../../src/demo/network/demo-contracts.ts'
import { type Deployed, planDeployment } from '../../src/demo/network/deployment.ts'
import { type Rpc, toQuantity } from '../../src/demo/network/rpc.ts'
import { deployBatchPayments, deployRequestProxyFactory } from '../detection/request-contracts.ts'
import { type ChainStory, createChainStory, placeFacts, type ToldBlock } from './chain-story.ts'
import type { Fact } from './money-model.ts'

const unzip = promisify(gunzip)
const MNEMONIC = 'test test test test test test test test test test test junk'
const ACCOUNTS = 30
const USD = 10n ** 8n

export interface SoakChainSpec {
  readonly network: string
  readonly chainId: number
  readonly blockMs: number
  /** Blocks after a final one. With `hasFinalizedTag` it is anvil's own, which is 2. */
  readonly depth: number
  readonly hasFinalizedTag: boolean
}

/** One event that a transaction is to cause: undefined for an event that is no fact, but counts as one of the transaction. */
export interface IntendedEvent {
  readonly fact: Fact | undefined
}

/** A transaction and the payment events that it causes if it succeeds, in their order. */
export interface Act {
  readonly kind: string
  readonly from: Address
  readonly call: ContractCall
  readonly events: readonly IntendedEvent[]
}

export interface SoakChain {
  readonly spec: SoakChainSpec
  readonly deployed: Deployed
  /** Request's contracts beside the demo's. */
  readonly more: {
    readonly batch: Hex
    readonly factory: Hex
    readonly unlisted: Hex
    readonly lookAlike: Hex
    readonly fake: Hex
  }
  readonly accounts: readonly Address[]
  readonly client: ChainClient
  readonly rpcUrl: string
  readonly story: ChainStory
  config(rpcUrls: readonly string[]): ChainConfig
  /** Lets nothing else change the chain meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** How many transactions of each kind were sent. */
  readonly sent: ReadonlyMap<string, number>
  /** Sends a transaction that waits for the next block. */
  send(act: Act): Promise<Hex>
  mine(): Promise<void>
  /** How many blocks may be replaced now. */
  maxReorg(): number
  /** Replaces the last blocks. @param keeps - decides which of the removed transactions are mined again */
  reorg(depth: number, keeps: (hash: Hex) => boolean): Promise<void>
  /** Keeps the state to which a later `kill` returns. */
  save(): Promise<void>
  /** Blocks since the last `save`; undefined before the first. */
  sinceSave(): number | undefined
  /** Kills the node, waits, and starts it again from the state that was saved. */
  kill(downMs: number): Promise<void>
  stop(): Promise<void>
}

/** Starts the node and deploys the contracts. */
export async function startSoakChain(spec: SoakChainSpec, folder: string): Promise<SoakChain> {
  const genesisTimeSec = Math.floor(Date.now() / 1_000) - 60
  const options = { chainId: spec.chainId, mnemonic: MNEMONIC, accounts: ACCOUNTS, automine: false, genesisTimeSec }
  const anvil = await startAnvil(options)
  const client = createChainClient(anvil.rpc)
  const accounts = (await anvil.rpc.call<Address[]>('eth_accounts')).map((each) => getAddress(each))
  const deployer = accounts[0] as Address
  const { timestampSec } = await client.head()
  const deployed = await deployContracts(client, planDeployment(CONTRACTS, { deployer }, timestampSec), { deployer })
  const more = await deployMore(client, deployed, deployer)
  return createSoakChain({ spec, folder, options, anvil, client, accounts, deployed, more })
}

const CONTRACTS = {
  native: { symbol: 'ETH', usdPrice: 3_000n * USD },
  tokens: [
    { symbol: 'USDC', name: 'USD Coin', decimals: 6, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'USDT', name: 'Tether USD', decimals: 6, behaviour: 'TETHER', usdPrice: USD },
    { symbol: 'DAI', name: 'Dai Stablecoin', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'TAX', name: 'Fee on transfer', decimals: 18, behaviour: 'FEE_ON_TRANSFER', usdPrice: USD },
  ],
  pools: [{ tokens: ['DAI', 'USDC'], each: 1_000_000_000n }],
  addressSeed: 0,
} as const

async function deployMore(client: ChainClient, { contracts }: Deployed, deployer: Address): Promise<SoakChain['more']> {
  const send = async (from: Address, call: ContractCall | { data: Hex }) => {
    const transactionHash = await client.send(from, call, { gas: 15_000_000n })
    await client.mine()
    return { transactionHash }
  }
  const deploy = async (data: Hex): Promise<Hex> => {
    const { transactionHash } = await send(deployer, { data })
    const receipt = await client.rpc.call<{ contractAddress: Hex }>('eth_getTransactionReceipt', [transactionHash])
    return receipt.contractAddress
  }
  const host = { client, contracts, deployer, send, mine: () => client.mine() }
  return {
    batch: await deployBatchPayments(host),
    factory: await deployRequestProxyFactory(host),
    unlisted: await deploy(encodeCreation('ERC20FeeProxy')),
    lookAlike: await deploy(encodeCreation('LookAlikeProxy')),
    fake: await deploy(encodeCreation('DemoToken', ['USD Coin', 'USDC', 6])),
  }
}

interface Parts {
  readonly spec: SoakChainSpec
  readonly folder: string
  readonly options: Parameters<typeof startAnvil>[0]
  readonly anvil: Anvil
  readonly client: ChainClient
  readonly accounts: readonly Address[]
  readonly deployed: Deployed
  readonly more: SoakChain['more']
}

interface RpcBlock {
  readonly number: Hex
  readonly hash: Hex
  readonly timestamp: Hex
  readonly transactions: readonly Hex[]
}

interface Ground extends Parts {
  readonly rpc: Rpc
  readonly acts: Map<Hex, Act>
  readonly story: ChainStory
  anvil: Anvil
  saved: { readonly block: number; readonly file: string } | undefined
  /** Blocks up to it cannot be replaced: the node has lost their states. */
  floor: number
  lastTimeSec: number
}

async function createSoakChain(parts: Parts): Promise<SoakChain> {
  const { spec, client, anvil, deployed, more } = parts
  const { rpc } = client
  const head = await readBlock(rpc, 'latest')
  const start = { number: Number(head.number), hash: head.hash, timestampSec: Number(head.timestamp), facts: [] }
  const story = createChainStory(spec.network, spec.depth, start)
  const ground: Ground = {
    ...parts,
    rpc,
    story,
    acts: new Map(),
    saved: undefined,
    floor: story.head(),
    lastTimeSec: start.timestampSec,
  }
  let turn: Promise<unknown> = Promise.resolve()
  const sent = new Map<string, number>()
  return {
    spec,
    deployed,
    more,
    accounts: parts.accounts,
    client,
    rpcUrl: anvil.rpcUrl,
    story,
    sent,
    config: (rpcUrls) => configOf(parts, rpcUrls),
    alone(work) {
      const done = turn.then(work)
      turn = done.catch(() => {})
      return done
    },
    async send(act) {
      const hash = await client.send(act.from, act.call, { gas: 3_000_000n })
      ground.acts.set(hash, act)
      sent.set(act.kind, (sent.get(act.kind) ?? 0) + 1)
      return hash
    },
    mine: () => mine(ground),
    maxReorg: () => Math.min(spec.depth, story.head() - ground.floor),
    reorg: (depth, keeps) => reorg(ground, depth, keeps),
    save: () => save(ground),
    sinceSave: () => ground.saved && story.head() - ground.saved.block,
    kill: (downMs) => kill(ground, downMs),
    stop: () => ground.anvil.stop(),
  }
}

function configOf({ spec, anvil, deployed, more }: Parts, rpcUrls: readonly string[]): ChainConfig {
  const { network: name, chainId, depth, hasFinalizedTag, blockMs } = spec
  const usual = describeChain({ name, chainId, finalityDepth: depth }, anvil.rpcUrl, deployed)
  const factory = {
    kind: 'SINGLE_REQUEST_PROXY_FACTORY',
    version: '0.1.0',
    address: canonical(more.factory),
    fromBlock: 1,
  }
  return {
    ...usual,
    rpcUrls,
    contracts: [...usual.contracts, factory as ChainConfig['contracts'][number]],
    intermediaries: [canonical(more.batch)],
    // Where the tag decides, the depth is never to.
    finality: { useFinalizedTag: hasFinalizedTag, depth: hasFinalizedTag ? 1_000 : depth },
    blockTimeSeconds: blockMs / 1_000,
  }
}

function readBlock(rpc: Rpc, block: string): Promise<RpcBlock> {
  return rpc.call<RpcBlock>('eth_getBlockByNumber', [block, false])
}

async function mine(ground: Ground): Promise<void> {
  const { client, story } = ground
  const sinceMs = Date.now()
  ground.lastTimeSec = Math.max(ground.lastTimeSec + 1, Math.floor(sinceMs / 1_000))
  await client.mine({ timestampSec: ground.lastTimeSec })
  await tell(ground, story.head() + 1, sinceMs)
}

/** Reads the blocks from a number up to the head into the story. */
async function tell(ground: Ground, from: number, sinceMs: number): Promise<void> {
  const { rpc, story } = ground
  const head = Number(await rpc.call<Hex>('eth_blockNumber'))
  const told: ToldBlock[] = []
  for (let number = from; number <= head; number++) told.push(await tellBlock(ground, number))
  story.add(told, sinceMs)
  ground.lastTimeSec = told.at(-1)?.timestampSec ?? ground.lastTimeSec
}

async function tellBlock({ client, rpc, acts, spec }: Ground, number: number): Promise<ToldBlock> {
  const block = await readBlock(rpc, toQuantity(number))
  const timestampSec = Number(block.timestamp)
  const facts = []
  for (const txHash of block.transactions) {
    const act = acts.get(txHash)
    if (act === undefined) continue
    const receipt = await client.receipt(txHash)
    if (receipt?.blockHash !== block.hash) throw new Error(`${spec.network}: receipt of ${txHash} is of another block`)
    const events = receipt.succeeded ? act.events : []
    const counted = receipt.logs.filter(({ topics }) => PAYMENT_EVENTS.has(topics[0] ?? '')).length
    // A payment to a contract that a reorg removed moves coins and causes no event.
    if (counted === 0) continue
    if (counted !== events.length)
      throw new Error(`${act.kind} ${txHash} has ${counted} payment events, not ${events.length}`)
    const placed = events.flatMap(({ fact }, eventIndex) => (fact === undefined ? [] : [{ fact, eventIndex }]))
    facts.push(...placeFacts(placed, { network: spec.network, txHash, block: number, timestampSec }))
  }
  return { number, hash: block.hash, timestampSec, facts }
}

/** The two signatures of TransferWithReferenceAndFee. */
const PAYMENT_EVENTS: ReadonlySet<string> = new Set(
  [
    'TransferWithReferenceAndFee(address,address,uint256,bytes,uint256,address)',
    'TransferWithReferenceAndFee(address,uint256,bytes,uint256,address)',
  ].map((signature) => keccak256(toBytes(signature))),
)

async function reorg(ground: Ground, depth: number, keeps: (hash: Hex) => boolean): Promise<void> {
  const { rpc, story, acts } = ground
  const first = story.head() - depth + 1
  const again: [Hex, number][] = []
  const cut = new Set<Address>()
  for (let number = first; number <= story.head(); number++) {
    const { transactions } = await readBlock(rpc, toQuantity(number))
    for (const hash of transactions) {
      const from = acts.get(hash)?.from
      // Later transactions of an account are not valid without the earlier ones.
      if (from === undefined || cut.has(from) || !keeps(hash)) {
        if (from !== undefined) cut.add(from)
        continue
      }
      again.push([await rpc.call<Hex>('eth_getRawTransactionByHash', [hash]), number - first])
    }
  }
  const sinceMs = Date.now()
  await rpc.call('anvil_reorg', [depth, again])
  await tell(ground, first, sinceMs)
}

async function save(ground: Ground): Promise<void> {
  const { rpc, story, folder, spec } = ground
  const zipped = await rpc.call<string>('anvil_dumpState')
  const file = join(folder, `${spec.network.toLowerCase()}-state.json`)
  await writeFile(file, await unzip(Buffer.from(zipped.slice(2), 'hex')))
  ground.saved = { block: story.head(), file }
}

async function kill(ground: Ground, downMs: number): Promise<void> {
  const { saved, options, rpc, story } = ground
  if (saved === undefined) throw new Error('there is no state to return to')
  const sinceMs = Date.now()
  process.kill(ground.anvil.pid, 'SIGKILL')
  await ground.anvil.exited
  await new Promise((resolve) => setTimeout(resolve, downMs))
  ground.anvil = await startAnvil({ ...options, port: Number(new URL(rpc.url).port), loadFile: saved.file })
  story.rewind(saved.block, sinceMs)
  ground.floor = saved.block
  ground.saved = undefined
  await checkHead(ground)
}

/** The state of a node that was started again is what the soak believes it to be. */
async function checkHead({ rpc, story, spec }: Ground): Promise<void> {
  const { number, hash } = await readBlock(rpc, 'latest')
  if (Number(number) !== story.head() || hash !== story.hashAt(story.head())) {
    throw new Error(`${spec.network} came back with block ${Number(number)} ${hash}, not ${story.head()}`)
  }
}
