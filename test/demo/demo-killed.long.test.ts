import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BlockHeader, createChainClient } from '../../demo/network/chain-client.ts'
import { MAX_UNSAVED_BLOCKS } from '../../demo/network/chain-specs.ts'
import { createRpc, toQuantity } from '../../demo/network/rpc.ts'

const HOST = fileURLToPath(new URL('./demo-host.ts', import.meta.url))

interface HostedChain {
  name: string
  rpcUrl: string
  depth: number
}

interface Host {
  child: ChildProcess
  fresh: readonly string[]
  chains: readonly HostedChain[]
}

describe('a demo whose process is killed', () => {
  let dataDir: string
  let host: Host
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'waybill-demo-kill-'))
    host = await startHost(dataDir)
  })
  afterAll(async () => {
    const nodes = await childrenOf(host.child)
    await kill(host.child)
    // The nodes write their states before they end.
    await waitUntilGone(nodes)
    await rm(dataDir, { recursive: true, force: true })
  })

  it('ends its nodes on SIGKILL, and the next start continues their chains', async () => {
    const heads = await readHeads(host)
    const nodes = await childrenOf(host.child)
    expect(nodes.length).toBe(4)
    await kill(host.child)
    await waitUntilGone(nodes)

    host = await startHost(dataDir)
    expect(host.fresh).toEqual([])
    await expectBlocks(host, heads)
  })

  it('loses no final block when its nodes are killed with it', async () => {
    const heads = await mineBeyond(host, 7)
    const nodes = await childrenOf(host.child)
    for (const pid of nodes) process.kill(pid, 'SIGKILL')
    await kill(host.child)
    await waitUntilGone(nodes)

    host = await startHost(dataDir)
    expect(host.fresh).toEqual([])
    const final: BlockHeader[] = heads.map(({ block }) => block)
    await expectBlocks(host, final)
  })
})

/** Waits until the chains have grown by some blocks, and returns the newest block of each that was final then. */
async function mineBeyond(host: Host, blocks: number): Promise<{ chain: string; block: BlockHeader }[]> {
  return Promise.all(
    host.chains.map(async (chain) => {
      const client = createChainClient(createRpc(chain.rpcUrl))
      const start = (await client.head()).number
      // Each waiting transaction makes the clock mine a block.
      const [account] = await client.rpc.call<`0x${string}`[]>('eth_accounts')
      if (!account) throw new Error('the node has no accounts')
      for (let sent = 0; sent < blocks; sent++) {
        const before = (await client.head()).number
        await client.send(account, { to: account, data: '0x' })
        while ((await client.head()).number === before) await setTimeout(20)
      }
      const head = (await client.head()).number
      expect(head - start).toBeGreaterThanOrEqual(blocks)
      const finalNumber = head - BigInt(MAX_UNSAVED_BLOCKS + 1)
      const found = await client.rpc.call<{ hash: `0x${string}` }>('eth_getBlockByNumber', [
        toQuantity(finalNumber),
        false,
      ])
      return { chain: chain.name, block: { number: finalNumber, hash: found.hash, timestampSec: 0, baseFeePerGas: 0n } }
    }),
  )
}

async function startHost(dataDir: string): Promise<Host> {
  const child = spawn(process.execPath, [HOST, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const [line] = (await once(lines, 'line')) as [string]
  return { child, ...(JSON.parse(line) as Omit<Host, 'child'>) }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

async function childrenOf(child: ChildProcess): Promise<number[]> {
  const text = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  return text.trim().split(' ').map(Number)
}

/** Waits until none of the processes runs; one that has ended and is not collected does not. */
async function waitUntilGone(pids: readonly number[]): Promise<void> {
  for (const pid of pids) while (await isRunning(pid)) await setTimeout(10)
}

async function isRunning(pid: number): Promise<boolean> {
  try {
    return !/^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function readHeads(host: Host): Promise<BlockHeader[]> {
  return Promise.all(host.chains.map((chain) => createChainClient(createRpc(chain.rpcUrl)).head()))
}

/** Expects every chain to have the same block as before, and further blocks after it. */
async function expectBlocks(host: Host, blocks: readonly BlockHeader[]): Promise<void> {
  for (const [index, chain] of host.chains.entries()) {
    const client = createChainClient(createRpc(chain.rpcUrl))
    const before = blocks[index] as BlockHeader
    const now = await client.rpc.call<{ hash: string } | null>('eth_getBlockByNumber', [
      toQuantity(before.number),
      false,
    ])
    expect(now?.hash).toBe(before.hash)
    expect((await client.head()).number).toBeGreaterThan(before.number)
  }
}
