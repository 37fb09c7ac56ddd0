/**
 * A chain of the soak: an anvil with Request's contracts that only the soak mines, reorganizes, kills and starts again, so that it knows every
 * block that ever was canonical.
 */
import { join } from 'node:path'
import { type Address, getAddress, type Hex, keccak256, toBytes } from 'viem'
import {
  type ChainClient,
  createChainClient,
  deployContracts,
  type Receipt,
} from '../../../demo/network/chain-client.ts'
import { canonical, describeChain } from '../../../demo/network/chain-config.ts'
import { type ContractCall, encodeCreation } from '../../../demo/network/demo-contracts.ts'
import { type Deployed, planDeployment } from '../../../demo/network/deployment.ts'
import { type Rpc, toQuantity } from '../../../demo/network/rpc.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { COIN, type Fact } from '../model/expected-state.ts'
import { deployBatchPayments, deployRequestProxyFactory } from '../request-contracts.ts'
import { type ChainStory, createChainStory, placeFacts, type ReportedBlock } from './chain-story.ts'
import { startHardhatBeneath } from './hardhat-beneath.ts'
import { type KeptTransaction, type SoakNode, startAnvilBeneath } from './soak-node.ts'

const USD = 10n ** 8n

export interface SoakChainSpec {
  readonly network: string
  readonly chainId: number
  readonly blockMs: number
  /** Blocks after a final one. With `hasFinalizedTag` it is anvil's own, which is 2. */
  readonly depth: number
  readonly hasFinalizedTag: boolean
  /** The path of hardhat's module `hardhat/hre`, where its network is the node; else it is anvil. */
  readonly hardhat?: string | undefined
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
  readonly canBeKilled: boolean
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
  const file = join(folder, `${spec.network.toLowerCase()}-state.json`)
  const node = spec.hardhat
    ? await startHardhatBeneath(spec.hardhat, spec.chainId, genesisTimeSec)
    : await startAnvilBeneath(spec.chainId, genesisTimeSec, file)
  const client = createChainClient(node.rpc)
  const accounts = (await node.rpc.call<Address[]>('eth_accounts')).map((each) => getAddress(each))
  const deployer = accounts[0] as Address
  const { timestampSec } = await client.head()
  const deployed = await deployContracts(client, planDeployment(CONTRACTS, { deployer }, timestampSec), { deployer })
  const more = await deployMore(client, deployed, deployer)
  return createSoakChain({ spec, node, client, accounts, deployed, more })
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
  readonly node: SoakNode
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
  /** The block whose state was saved. */
  saved: number | undefined
  /** Blocks up to it cannot be replaced: the node has lost their states. */
  floor: number
  lastTimeSec: number
}

async function createSoakChain(parts: Parts): Promise<SoakChain> {
  const { spec, client, node, deployed, more } = parts
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
  let queue: Promise<unknown> = Promise.resolve()
  const sent = new Map<string, number>()
  return {
    spec,
    deployed,
    more,
    accounts: parts.accounts,
    client,
    rpcUrl: node.rpc.url,
    story,
    sent,
    config: (rpcUrls) => configOf(parts, rpcUrls),
    alone(work) {
      const done = queue.then(work)
      queue = done.catch(() => {})
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
    async save() {
      ground.saved = await save(ground)
    },
    canBeKilled: node.lives !== undefined,
    sinceSave: () => ground.saved && story.head() - ground.saved,
    kill: (downMs) => kill(ground, downMs),
    stop: () => node.stop(),
  }
}

function configOf({ spec, node, deployed, more }: Parts, rpcUrls: readonly string[]): ChainConfig {
  const { network: name, chainId, depth, hasFinalizedTag, blockMs } = spec
  const usual = describeChain({ name, chainId, finalityDepth: depth }, node.rpc.url, deployed)
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
  const { node, story } = ground
  const sinceMs = Date.now()
  ground.lastTimeSec = Math.max(ground.lastTimeSec + 1, Math.floor(sinceMs / 1_000))
  await node.mine(ground.lastTimeSec)
  await tell(ground, story.head() + 1, sinceMs)
}

/** Reads the blocks from a number up to the head into the story. */
async function tell(ground: Ground, from: number, sinceMs: number): Promise<void> {
  const { rpc, story } = ground
  const head = Number(await rpc.call<Hex>('eth_blockNumber'))
  const reported: ReportedBlock[] = []
  for (let number = from; number <= head; number++) reported.push(await tellBlock(ground, number))
  story.add(reported, sinceMs)
  ground.lastTimeSec = reported.at(-1)?.timestampSec ?? ground.lastTimeSec
}

async function tellBlock({ client, rpc, acts, spec }: Ground, number: number): Promise<ReportedBlock> {
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
    const placed = events.flatMap(({ fact }, eventIndex) => {
      if (fact === undefined) return []
      const isEmpty = act.kind === 'request-proxy' && movedNothing(receipt.logs, fact)
      return [{ fact: isEmpty ? { ...fact, received: 0n } : fact, eventIndex }]
    })
    facts.push(...placeFacts(placed, { network: spec.network, txHash, block: number, timestampSec }))
  }
  return { number, hash: block.hash, timestampSec, facts }
}

/** Whether a SingleRequestProxy was made to pay while it held no tokens: it pays what it holds. */
function movedNothing(logs: Receipt['logs'], { token }: Fact): boolean {
  return !logs.some(({ address, data }) => address.toLowerCase() === token && BigInt(data) > 0n) && token !== COIN
}

/** The two signatures of TransferWithReferenceAndFee. */
const PAYMENT_EVENTS: ReadonlySet<string> = new Set(
  [
    'TransferWithReferenceAndFee(address,address,uint256,bytes,uint256,address)',
    'TransferWithReferenceAndFee(address,uint256,bytes,uint256,address)',
  ].map((signature) => keccak256(toBytes(signature))),
)

async function reorg(ground: Ground, depth: number, keeps: (hash: Hex) => boolean): Promise<void> {
  const { rpc, node, story, acts } = ground
  const first = story.head() - depth + 1
  const kept: KeptTransaction[] = []
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
      kept.push({ hash, offset: number - first })
    }
  }
  const sinceMs = Date.now()
  await node.reorg(depth, kept, Math.max(ground.lastTimeSec + 1, Math.floor(sinceMs / 1_000)))
  await tell(ground, first, sinceMs)
}

async function save({ node, story }: Ground): Promise<number> {
  await node.lives?.save()
  return story.head()
}

async function kill(ground: Ground, downMs: number): Promise<void> {
  const { saved, node, story } = ground
  if (saved === undefined) throw new Error('there is no state to return to')
  const sinceMs = Date.now()
  await node.lives?.kill(downMs)
  story.rewind(saved, sinceMs)
  ground.floor = saved
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
