/** Contracts of Request that no demo chain has: its batches and the factory of SingleRequestProxies, as its package compiled them. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Abi, type Address, encodeDeployData, type Hex, parseAbi } from 'viem'
import type { Rpc } from '../../demo/network/rpc.ts'
import type { TestChain } from '../support/chains/chain.ts'

const require = createRequire(import.meta.url)
const requestPackage = dirname(require.resolve('@requestnetwork/smart-contracts/package.json'))

const CONSTRUCTORS = {
  2: parseAbi(['constructor(address, address)']),
  3: parseAbi(['constructor(address, address, address)']),
  6: parseAbi(['constructor(address, address, address, address, address, address)']),
} as const

/** The package's modules import ethers, so the code is cut out of their text. */
function readBytecode(name: string): Hex {
  const path = `dist/src/types/factories/src/contracts/${name}__factory.js`
  const [, bytecode] = /_bytecode = "(0x[0-9a-f]+)"/.exec(readFileSync(join(requestPackage, path), 'utf8')) ?? []
  if (bytecode === undefined) throw new Error(`${name} has no bytecode`)
  return bytecode as Hex
}

/** The parts of a chain that a deployment needs. */
interface Host extends Pick<TestChain, 'deployer'> {
  readonly client: { readonly rpc: Pick<Rpc, 'call'> }
  readonly contracts: Pick<TestChain['contracts'], 'erc20FeeProxy' | 'ethereumFeeProxy'>
  mine(): Promise<unknown>
  send(from: Address, call: { data: Hex }, options?: { gas?: bigint }): Promise<{ transactionHash: Hex }>
}

async function deploy(chain: Host, name: string, args: readonly Hex[]): Promise<Hex> {
  const abi: Abi = CONSTRUCTORS[args.length as keyof typeof CONSTRUCTORS]
  const data = encodeDeployData({ abi, bytecode: readBytecode(name), args })
  const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 15_000_000n })
  const read = () =>
    chain.client.rpc.call<{ contractAddress: Hex } | null>('eth_getTransactionReceipt', [transactionHash])
  // Not every chain mines by itself.
  const receipt = (await read()) ?? (await chain.mine().then(read))
  if (receipt === null) throw new Error(`${name} was not deployed`)
  return receipt.contractAddress
}

/** BatchPayments over the chain's proxies. */
export function deployBatchPayments(chain: Host): Promise<Hex> {
  const { erc20FeeProxy, ethereumFeeProxy } = chain.contracts
  return deploy(chain, 'BatchPayments', [erc20FeeProxy, ethereumFeeProxy, chain.deployer])
}

/** BatchConversionPayments over the chain's proxies. */
export function deployBatchConversionPayments(chain: TestChain): Promise<Hex> {
  const { erc20FeeProxy, ethereumFeeProxy, erc20ConversionProxy, ethConversionProxy, conversionPath } = chain.contracts
  const proxies = [erc20FeeProxy, ethereumFeeProxy, erc20ConversionProxy, ethConversionProxy]
  return deploy(chain, 'BatchConversionPayments', [...proxies, conversionPath, chain.deployer])
}

/** ERC20EscrowToPay over the chain's proxy. */
export function deployEscrow(chain: TestChain): Promise<Hex> {
  return deploy(chain, 'ERC20EscrowToPay', [chain.contracts.erc20FeeProxy, chain.deployer])
}

/** An event of a contract's interface. */
interface PublishedEvent {
  readonly name: string
  readonly inputs: readonly { readonly type: string; readonly indexed: boolean }[]
}

/** The events of all versions of a contract that the package publishes, by version. */
export function publishedEvents(name: string): Map<string, PublishedEvent[]> {
  const folder = join(requestPackage, 'dist/src/lib/artifacts', name)
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return new Map(
    files.map((file) => {
      const { abi } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as {
        abi: (PublishedEvent & { type: string })[]
      }
      return [file.replace('.json', ''), abi.filter(({ type }) => type === 'event')]
    }),
  )
}

/** SingleRequestProxyFactory over the chain's proxies. */
export function deployRequestProxyFactory(chain: Host): Promise<Hex> {
  const { erc20FeeProxy, ethereumFeeProxy } = chain.contracts
  return deploy(chain, 'SingleRequestProxyFactory', [ethereumFeeProxy, erc20FeeProxy, chain.deployer])
}
