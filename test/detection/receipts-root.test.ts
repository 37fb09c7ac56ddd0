/** The root of a block's receipts and the hash of its header, against blocks of real nodes. */
import { readFileSync } from 'node:fs'
import { createWalletClient, type Hex, http, parseGwei } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blockHashOf, type RpcHeader } from '../../src/contracts/block-hash.ts'
import { bloomBitsOf, bloomOf, mayHold } from '../../src/contracts/logs-bloom.ts'
import { type EncodableReceipt, encodeReceipt, receiptsRootOf } from '../../src/contracts/receipts-root.ts'
import { bytesToHex, hexToBytes } from '../../src/domain/hex.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'

const NO_LOGS = `0x${'00'.repeat(256)}`

let chain: TestChain
beforeAll(async () => {
  chain = await startTestChain({ automine: false })
})
afterAll(() => chain.stop())

interface Block {
  readonly header: RpcHeader & { readonly hash: string; readonly receiptsRoot: string; readonly logsBloom: string }
  readonly receipts: readonly EncodableReceipt[]
}

async function readNewest(): Promise<Block> {
  const { rpc } = chain.client
  const header = await rpc.call<Block['header']>('eth_getBlockByNumber', ['latest', false])
  return { header, receipts: await rpc.call('eth_getBlockReceipts', [header.hash]) }
}

/** Signs with the account of chain.wallets[0]; anvil's own accounts cannot sign every type. */
function walletOf() {
  const account = mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: 1 })
  return createWalletClient({ account, transport: http(chain.rpcUrl) })
}

describe('blocks of anvil', () => {
  test('have the receiptsRoot and the hash that we compute, without transactions', async () => {
    await chain.mine()
    const { header, receipts } = await readNewest()
    expect(receipts).toEqual([])
    expect(receiptsRootOf(receipts)).toBe(header.receiptsRoot)
    expect(blockHashOf(header)).toBe(header.hash)
  })

  test('have them with transactions of every type that carries no blob, one of them reverted', async () => {
    const [sender, to] = chain.wallets
    const wallet = walletOf()
    const common = { chain: null, to, value: 1n, gas: 100_000n } as const
    const fees = { maxFeePerGas: parseGwei('1000'), maxPriorityFeePerGas: 1n }
    const first = Number(await chain.client.rpc.call<Hex>('eth_getTransactionCount', [sender, 'latest']))
    const authorization = await wallet.signAuthorization({
      contractAddress: to,
      chainId: chain.chainId,
      nonce: first + 4,
    })
    const gasPrice = parseGwei('1000')
    const accessList = [{ address: to, storageKeys: [] }]
    const sent = [
      await wallet.sendTransaction({ ...common, type: 'legacy', gasPrice, nonce: first }),
      await wallet.sendTransaction({ ...common, type: 'eip2930', gasPrice, accessList, nonce: first + 1 }),
      // The fee proxy has no such function and takes no coins.
      await wallet.sendTransaction({ ...common, ...fees, to: chain.contracts.erc20FeeProxy, nonce: first + 2 }),
      await wallet.sendTransaction({ ...common, ...fees, authorizationList: [authorization], nonce: first + 3 }),
    ]
    await chain.mine()
    const { header, receipts } = await readNewest()
    expect(receipts.map(({ type, status }) => [type, status])).toEqual([
      ['0x0', '0x1'],
      ['0x1', '0x1'],
      ['0x2', '0x0'],
      ['0x4', '0x1'],
    ])
    expect(receipts).toHaveLength(sent.length)
    expect(receiptsRootOf(receipts)).toBe(header.receiptsRoot)
    expect(blockHashOf(header)).toBe(header.hash)
  })

  test.each([1, 17, 140])('have them with %i transactions', async (count) => {
    const [sender, to] = chain.wallets
    const { USDC } = chain.tokens
    await chain.fund(USDC, sender, 1n)
    for (let sent = 0; sent < count; sent++) {
      // `transfer(to, 0)`, whose receipt has a log.
      const data: Hex = `0xa9059cbb${to.slice(2).toLowerCase().padStart(64, '0')}${'0'.repeat(64)}`
      await chain.send(sender, { to: USDC.address, data }, { gas: 100_000n })
    }
    await chain.mine()
    const { header, receipts } = await readNewest()
    expect(receipts).toHaveLength(count)
    expect(receiptsRootOf(receipts)).toBe(header.receiptsRoot)
    expect(blockHashOf(header)).toBe(header.hash)
    expect(bytesToHex(bloomOf(receipts.flatMap(({ logs }) => logs)))).toBe(header.logsBloom)
  })

  test('have another root when a log is left out, changed, or moved to another receipt', async () => {
    const { header, receipts } = await readNewest()
    const [first, second, ...others] = receipts as [EncodableReceipt, EncodableReceipt, ...EncodableReceipt[]]
    const [log] = first.logs
    if (log === undefined) throw new Error('the receipt has no log')
    const lies: readonly (readonly EncodableReceipt[])[] = [
      [{ ...first, logs: [] }, second, ...others],
      [{ ...first, logs: [], logsBloom: NO_LOGS }, second, ...others],
      [{ ...first, logs: [{ ...log, data: `0x${'0'.repeat(63)}1` }] }, second, ...others],
      [{ ...first, logs: [] }, { ...second, logs: [...second.logs, log] }, ...others],
      [first, ...others],
      [second, first, ...others],
      [{ ...first, status: '0x0' }, second, ...others],
    ]
    expect(lies.map(receiptsRootOf)).not.toContain(header.receiptsRoot)
    expect(receiptsRootOf(receipts)).toBe(header.receiptsRoot)
  })

  test('have another hash when any field of the header is changed', async () => {
    const { header } = await readNewest()
    const changed = ['logsBloom', 'receiptsRoot', 'number', 'timestamp', 'baseFeePerGas', 'requestsHash'] as const
    const hashes = changed.map((name) => {
      const text = header[name] as string
      return blockHashOf({ ...header, [name]: text.slice(0, -1) + (text.endsWith('0') ? '1' : '0') })
    })
    expect(hashes).toHaveLength(changed.length)
    expect(hashes).not.toContain(header.hash)
  })
})

describe('recorded blocks', () => {
  test('Base Goerli before Canyon: the nonce of a deposit is not encoded', () => {
    const text = readFileSync(new URL('../cases/receipts/base-goerli.json', import.meta.url), 'utf8')
    const { receiptsRoot, receipts } = JSON.parse(text) as { receiptsRoot: string; receipts: EncodableReceipt[] }
    const complete = receipts.map((receipt) => ({ ...receipt, logsBloom: bytesToHex(bloomOf(receipt.logs)) }))
    expect(receiptsRootOf(complete)).toBe(receiptsRoot)
  })

  test('an OP-stack chain since Canyon: nonce and version of a deposit are encoded (anvil 1.7.1 --network optimism)', () => {
    const deposit = { type: '0x7E', status: '0x1', cumulativeGasUsed: '0x5208', logsBloom: NO_LOGS, logs: [] }
    const receipt = { ...deposit, depositNonce: '0x1', depositReceiptVersion: '0x1' }
    expect(receiptsRootOf([receipt])).toBe('0xdbfba0cf1914b3c1e4a90affb3805a438411c3a55a04b59f649ae1cf4c487a79')
  })

  test('Goerli since Shanghai, before Cancun: a header without fields of blobs', () => {
    const header = {
      parentHash: '0x72d92c1498e05952988d4e79a695928a6bcbd37239f8a1734051263b4d3504b8',
      sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
      miner: '0x000095e79eac4d76aab57cb2c1f091d553b36ca0',
      stateRoot: '0xc56738518b2c7854a640ae25996d2211c9ef0dd2e4dd9e59e9d9cacef39622da',
      transactionsRoot: '0x4a87d0cf5990b1c5bac631583e5965c2ba943858bebb2e07f74d0b697f73821a',
      receiptsRoot: '0xaff90ae18dcc35924a4bddb68d403b8b7812c10c3ea2a114f34105c87d75bcdb',
      logsBloom:
        '0x020010404000001a0000021000000080001100410000100001000010040200980220400000008806200200000100000000000000000000008000000400042000000050000040000112080808800002044000040004042008800480002000000000000002020020000042002400000820000080040000000010200010020010100101212050000008000000008000001010200c80000112010000438040020400000000202400000000002002a0210402000622010000000001700144000040000000002204000000c000410105024010000808000000002004002000000261000000822200200800881000000012500400400000000000000040010000800000',
      difficulty: '0x0',
      number: '0x84161e',
      gasLimit: '0x1c9c380',
      gasUsed: '0x18f759',
      timestamp: '0x64110a5c',
      extraData: '0x',
      mixHash: '0x5b53dc49cbab268ef9950b1d81b5e36a1b2f1b97aee1b7ff6e4db0e06c29a8b0',
      nonce: '0x0000000000000000',
      baseFeePerGas: '0x3fb7c357',
      withdrawalsRoot: '0xbe712c930a0665264b025ced87cc7839eef95a3cbc26dadc93e9e185a350ad28',
    }
    expect(blockHashOf(header)).toBe('0xa16c6bcda4fdca88b5761965c4d724f7afc6a6900d9051a204e544870adb3452')
    expect(blockHashOf({ ...header, mixHash: undefined })).toBeUndefined()
  })
})

describe('encodings', () => {
  test('of types that are not known are refused', () => {
    const receipt = { type: '0x7b', status: '0x1', cumulativeGasUsed: '0x1', logsBloom: NO_LOGS, logs: [] }
    expect(encodeReceipt(receipt)).toBeUndefined()
    expect(receiptsRootOf([{ ...receipt, type: '0x2' }, receipt])).toBeUndefined()
  })

  test('of receipts from before Byzantium hold a state root', () => {
    const root = `0x${'ab'.repeat(32)}`
    const bytes = encodeReceipt({ root, cumulativeGasUsed: '0x5208', logsBloom: NO_LOGS, logs: [] })
    expect(bytesToHex(bytes?.subarray(3, 36) ?? new Uint8Array())).toBe(`0xa0${'ab'.repeat(32)}`)
  })
})

test('a bloom excludes what no log holds, and excludes nothing when it is no bloom', () => {
  const address = `0x${'11'.repeat(20)}`
  const bloom = bloomOf([{ address, topics: [`0x${'22'.repeat(32)}`] }])
  expect(mayHold(bloom, bloomBitsOf(address))).toBe(true)
  expect(mayHold(bloom, bloomBitsOf(`0x${'22'.repeat(32)}`))).toBe(true)
  expect(mayHold(bloom, bloomBitsOf(`0x${'33'.repeat(20)}`))).toBe(false)
  expect(mayHold(hexToBytes('0x'), bloomBitsOf(address))).toBe(true)
})
