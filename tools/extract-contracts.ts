/**
 * Extracts ABI and bytecode of the contracts of a demo chain: Request's payment contracts from the package that publishes them, and
 * Multicall3 from viem. A production install has no devDependencies, so the result is committed.
 *
 *   tools/with-node node tools/extract-contracts.ts           writes demo/contracts/*.json
 *   tools/with-node node tools/extract-contracts.ts --check   ends with 1 where a committed file differs
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { runInNewContext } from 'node:vm'
import { multicall3Abi } from 'viem'
import { type CompiledContract, writeContractFiles } from './contract-files.ts'

/** The newest version of each contract, under the names of the package. */
const REQUEST_CONTRACTS: Record<string, string> = {
  ERC20FeeProxy: 'ERC20FeeProxy',
  EthereumFeeProxy: 'EthereumFeeProxy',
  Erc20ConversionProxy: 'Erc20ConversionProxy',
  EthConversionProxy: 'EthConversionProxy',
  ChainlinkConversionPath: 'ChainlinkConversionPath.sol/ChainlinkConversionPath',
  ERC20SwapToPay: 'ERC20SwapToPay.sol/ERC20SwapToPay',
  BatchPayments: 'BatchPayments',
}

const require = createRequire(import.meta.url)
const requestPackage = dirname(require.resolve('@requestnetwork/smart-contracts/package.json'))
const requestVersion = (require('@requestnetwork/smart-contracts/package.json') as { version: string }).version

function extractRequestContract(path: string): CompiledContract {
  const file = join(requestPackage, 'dist/src/types/factories/src/contracts', `${path}__factory.js`)
  const factory = evaluateFactory(readFileSync(file, 'utf8'), `${path.split('/').at(-1)}__factory`)
  return {
    source: `@requestnetwork/smart-contracts ${requestVersion}`,
    license: 'MIT',
    notice: readFileSync(join(requestPackage, 'LICENSE'), 'utf8').trim(),
    abi: factory.abi,
    bytecode: factory.bytecode,
  }
}

/** A typechain factory needs ethers only for calls to a chain; its ABI and bytecode are constants. */
function evaluateFactory(source: string, name: string): { abi: readonly unknown[]; bytecode: `0x${string}` } {
  const ethers = { ContractFactory: Object }
  const exports: Record<string, { abi: readonly unknown[]; bytecode: `0x${string}` }> = {}
  runInNewContext(source, { exports, require: () => ethers })
  const factory = exports[name]
  if (!factory?.bytecode || !factory.abi) throw new Error(`${name} carries no ABI or no bytecode`)
  return factory
}

async function extractMulticall3(): Promise<CompiledContract> {
  const viemEntry = require.resolve('viem')
  const viemFolder = viemEntry.slice(0, viemEntry.lastIndexOf('/node_modules/viem/') + '/node_modules/viem'.length)
  const { version } = JSON.parse(readFileSync(join(viemFolder, 'package.json'), 'utf8')) as { version: string }
  const constants = (await import(pathToFileURL(join(viemFolder, '_esm/constants/contracts.js')).href)) as {
    multicall3Bytecode: `0x${string}`
  }
  return {
    source: `Multicall3 (github.com/mds1/multicall3) as published with viem ${version}`,
    license: 'MIT',
    notice: readFileSync(join(viemFolder, 'LICENSE'), 'utf8').trim(),
    abi: multicall3Abi,
    bytecode: constants.multicall3Bytecode,
  }
}

const files: Record<string, CompiledContract> = { Multicall3: await extractMulticall3() }
for (const [name, path] of Object.entries(REQUEST_CONTRACTS)) files[name] = extractRequestContract(path)
process.exitCode = writeContractFiles(files, process.argv.includes('--check'))
