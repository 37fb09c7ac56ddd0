/** The root of a block's receipts and the hash of its header, against blocks of real nodes. */
import { readFileSync } from 'node:fs'
import { createWalletClient, type Hex, http, parseGwei } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  blockHashOf,
  bloomBitsOf,
  bloomOf,
  type EncodableReceipt,
  encodeReceipt,
  mayHold,
  type RpcHeader,
  receiptsRootOf,
} from '../../src/contracts/block-proofs.ts'
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

/** Blocks and headers of real nodes; each says where it is from. */
function readCases<T>(name: string): ({ says: string } & T)[] {
  return JSON.parse(readFileSync(new URL(`../cases/receipts/${name}.json`, import.meta.url), 'utf8'))
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

  test.each(readCases<{ receiptsRoot: string; receipts: EncodableReceipt[] }>('recorded-blocks'))(
    '$says',
    ({ receiptsRoot, receipts }) => {
      const complete = receipts.map((receipt) => ({ ...receipt, logsBloom: bytesToHex(bloomOf(receipt.logs)) }))
      expect(receiptsRootOf(complete)).toBe(receiptsRoot)
    },
  )

  test.each(readCases<{ hash: string; header: RpcHeader }>('recorded-headers'))('$says', ({ hash, header }) => {
    expect(blockHashOf(header)).toBe(hash)
    expect(blockHashOf({ ...header, mixHash: undefined })).toBeUndefined()
  })
})

describe('encodings', () => {
  test('of types that are not known are refused', () => {
    const receipt = { type: '0x7b', status: '0x1', cumulativeGasUsed: '0x1', logsBloom: NO_LOGS, logs: [] }
    expect(encodeReceipt(receipt)).toBeUndefined()
    expect(receiptsRootOf([{ ...receipt, type: '0x2' }, receipt])).toBeUndefined()
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
