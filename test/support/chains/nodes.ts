/**
 * Nodes of three kinds for the same tests: anvil, hardhat's network and geth in dev mode. Each mines what it is sent at once, and has an
 * unlocked account with coins. Tests use only methods that all of them have.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from 'viem'
import { startAnvil } from '../../../demo/network/anvil.ts'
import { createRpc, type Rpc, toQuantity } from '../../../demo/network/rpc.ts'

export interface TestNode {
  readonly rpc: Rpc
  readonly chainId: number
  /** Unlocked, with coins. */
  readonly rich: Hex
  /** Sets the base fee of the next block, where the node lets one. */
  setBaseFee(wei: bigint): Promise<void>
  stop(): Promise<void>
}

export type StartNode = () => Promise<TestNode>

const MNEMONIC = 'test test test test test test test test test test test junk'

async function nodeOf(rpc: Rpc, setBaseFeeMethod: string | undefined, stop: () => Promise<void>): Promise<TestNode> {
  const [rich] = await rpc.call<Hex[]>('eth_accounts')
  if (rich === undefined) throw new Error('the node has no accounts')
  return {
    rpc,
    chainId: Number(await rpc.call<Hex>('eth_chainId')),
    rich,
    async setBaseFee(wei) {
      if (setBaseFeeMethod === undefined) return
      // A block's receipts can be read shortly before the node computes the next base fee, which replaces one that was set meanwhile.
      for (let next: Hex | undefined; next !== toQuantity(wei); ) {
        await rpc.call(setBaseFeeMethod, [toQuantity(wei)])
        const { baseFeePerGas } = await rpc.call<{ baseFeePerGas: Hex[] }>('eth_feeHistory', ['0x1', 'latest', []])
        next = baseFeePerGas.at(-1)
      }
    },
    stop,
  }
}

export const startAnvilNode: StartNode = async () => {
  const anvil = await startAnvil({ chainId: 31_337, automine: true, mnemonic: MNEMONIC, accounts: 1 })
  return nodeOf(anvil.rpc, 'anvil_setNextBlockBaseFeePerGas', () => anvil.stop())
}

/** What is used of the package hardhat 3. */
interface HardhatModule {
  createHardhatRuntimeEnvironment(config: object): Promise<{
    network: {
      createServer(
        params: object,
        hostname: string,
        port: number,
      ): Promise<{ listen(): Promise<{ port: number }>; close(): Promise<void> }>
    }
  }>
}

/**
 * Hardhat's network behind HTTP, in this process.
 *
 * @param entry - the path of its module `hardhat/hre`
 * @param options - of the network, as hardhat's configuration has them
 */
export async function createHardhatServer(entry: string, options: object) {
  const module = (await import(entry)) as HardhatModule
  const network = { type: 'edr-simulated', chainType: 'l1', ...options } as const
  const hardhat = await module.createHardhatRuntimeEnvironment({ networks: { here: network } })
  const server = await hardhat.network.createServer({ network: 'here' }, '127.0.0.1', 0)
  const { port } = await server.listen()
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

/** Hardhat's network, in this process. @param entry - as for {@link createHardhatServer} */
export async function startHardhatNode(entry: string): Promise<TestNode> {
  const server = await createHardhatServer(entry, { chainId: 31_337 })
  return nodeOf(createRpc(server.url), 'hardhat_setNextBlockBaseFeePerGas', server.close)
}

const GETH_START_MS = 20_000

/** geth in dev mode. @param binary - its path */
export async function startGethNode(binary: string): Promise<TestNode> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-geth-'))
  const args = [
    '--dev',
    '--dev.gaslimit',
    '30000000',
    '--datadir',
    folder,
    '--http',
    '--http.port',
    '0',
    '--ipcdisable',
    '--nodiscover',
  ]
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const stop = async () => {
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    await closed
    await rm(folder, { recursive: true, force: true })
  }
  const rpc = createRpc(`http://${await gethAddress(child)}`)
  return nodeOf(rpc, undefined, stop)
}

async function gethAddress(child: ChildProcess): Promise<string> {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  for (let waitedMs = 0; waitedMs < GETH_START_MS; waitedMs += 50) {
    const address = /HTTP server started\s+endpoint=(\S+)/.exec(said)?.[1]
    if (address !== undefined) return address
    if (child.exitCode !== null) break
    await wait(50)
  }
  throw new Error(`geth did not start: ${said.slice(-2_000)}`)
}
