/** Smart accounts as their projects compiled them: a Safe with one owner, and accounts of ERC-4337's EntryPoint. */
import { createRequire } from 'node:module'
import {
  type Abi,
  type Address,
  concatHex,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  numberToHex,
  parseAbi,
  parseGwei,
  zeroAddress,
} from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { ContractCall } from '../../demo/network/demo-contracts.ts'
import type { TestChain } from '../support/chains/chain.ts'

const require = createRequire(import.meta.url)
const SAFE_PACKAGE = '@safe-global/safe-smart-account/build/artifacts/contracts'
const ACCOUNTS_PACKAGE = '@account-abstraction/contracts/artifacts'

const SAFE_ABI = parseAbi([
  'function setup(address[] owners, uint256 threshold, address to, bytes data, address fallbackHandler, address paymentToken, uint256 payment, address paymentReceiver)',
  'function createProxyWithNonce(address singleton, bytes initializer, uint256 saltNonce) returns (address proxy)',
  'function nonce() view returns (uint256)',
  'function getTransactionHash(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, uint256 nonce) view returns (bytes32)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures) payable returns (bool)',
])
const OPERATION =
  '(address sender, uint256 nonce, bytes initCode, bytes callData, bytes32 accountGasLimits, uint256 preVerificationGas, bytes32 gasFees, bytes paymasterAndData, bytes signature)'
const ENTRY_POINT_ABI = parseAbi([
  'constructor(address entryPoint)',
  'function createAccount(address owner, uint256 salt) returns (address account)',
  'function execute(address target, uint256 value, bytes data)',
  'function getNonce(address sender, uint192 key) view returns (uint256)',
  `function getUserOpHash(${OPERATION} operation) view returns (bytes32)`,
  `function handleOps(${OPERATION}[] operations, address beneficiary)`,
])

async function deploy(chain: TestChain, data: Hex): Promise<Address> {
  const nonce = await chain.client.rpc.call<Hex>('eth_getTransactionCount', [chain.deployer, 'latest'])
  await chain.send(chain.deployer, { data }, { gas: 15_000_000n })
  return getContractAddress({ from: chain.deployer, nonce: BigInt(nonce) })
}

function bytecodeOf(path: string): Hex {
  const { bytecode } = require(path) as { bytecode: Hex }
  return bytecode
}

async function read<T>(chain: TestChain, to: Address, abi: Abi, functionName: string, args: readonly unknown[] = []) {
  const data = encodeFunctionData<Abi, string>({ abi, functionName, args })
  return decodeFunctionResult<Abi, string>({ abi, functionName, data: await chain.client.read({ to, data }) }) as T
}

/** Calls a factory. @returns the address that it made */
async function make(chain: TestChain, to: Address, abi: Abi, functionName: string, args: readonly unknown[]) {
  const made = await read<Address>(chain, to, abi, functionName, args)
  const data = encodeFunctionData<Abi, string>({ abi, functionName, args })
  await chain.send(chain.deployer, { to, data }, { gas: 5_000_000n })
  return made
}

/** A Safe behind its proxy. */
export async function deploySafe(chain: TestChain, owner: PrivateKeyAccount): Promise<Address> {
  const singleton = await deploy(chain, bytecodeOf(`${SAFE_PACKAGE}/Safe.sol/Safe.json`))
  const factory = await deploy(chain, bytecodeOf(`${SAFE_PACKAGE}/proxies/SafeProxyFactory.sol/SafeProxyFactory.json`))
  const setup = [[owner.address], 1n, zeroAddress, '0x', zeroAddress, zeroAddress, 0n, zeroAddress]
  const initializer = encodeFunctionData<Abi, string>({ abi: SAFE_ABI, functionName: 'setup', args: setup })
  return make(chain, factory, SAFE_ABI, 'createProxyWithNonce', [singleton, initializer, 1n])
}

/** The transaction by which anybody may have a Safe make a call that its owner signed. */
export async function signSafeCall(
  chain: TestChain,
  { safe, owner }: { readonly safe: Address; readonly owner: PrivateKeyAccount },
  { to, data, value = 0n }: ContractCall,
): Promise<ContractCall> {
  const terms = [to, value, data, 0, 0n, 0n, 0n, zeroAddress, zeroAddress]
  const nonce = await read<bigint>(chain, safe, SAFE_ABI, 'nonce')
  const hash = await read<Hex>(chain, safe, SAFE_ABI, 'getTransactionHash', [...terms, nonce])
  const args = [...terms, await owner.sign({ hash })]
  return { to: safe, data: encodeFunctionData<Abi, string>({ abi: SAFE_ABI, functionName: 'execTransaction', args }) }
}

export interface EntryPoint {
  readonly address: Address
  readonly factory: Address
}

/** The EntryPoint 0.7 and its factory of SimpleAccounts. */
export async function deployEntryPoint(chain: TestChain): Promise<EntryPoint> {
  const address = await deploy(chain, bytecodeOf(`${ACCOUNTS_PACKAGE}/EntryPoint.json`))
  const bytecode = bytecodeOf(`${ACCOUNTS_PACKAGE}/SimpleAccountFactory.json`)
  const factory = await deploy(chain, encodeDeployData({ abi: ENTRY_POINT_ABI, bytecode, args: [address] }))
  return { address, factory }
}

/** A SimpleAccount. */
export function makeAccount(chain: TestChain, { factory }: EntryPoint, owner: PrivateKeyAccount): Promise<Address> {
  return make(chain, factory, ENTRY_POINT_ABI, 'createAccount', [owner.address, 0n])
}

/** The transaction by which a bundler has accounts make calls that their owners signed. */
export async function signBundle(
  chain: TestChain,
  { address }: EntryPoint,
  operations: readonly { account: Address; owner: PrivateKeyAccount; call: ContractCall }[],
): Promise<ContractCall> {
  const signed = []
  for (const { account, owner, call } of operations) {
    const args = [call.to, call.value ?? 0n, call.data]
    const operation = {
      sender: account,
      nonce: await read<bigint>(chain, address, ENTRY_POINT_ABI, 'getNonce', [account, 0n]),
      initCode: '0x',
      callData: encodeFunctionData<Abi, string>({ abi: ENTRY_POINT_ABI, functionName: 'execute', args }),
      accountGasLimits: inHalves(200_000n, 500_000n),
      preVerificationGas: 50_000n,
      gasFees: inHalves(1n, parseGwei('1000')),
      paymasterAndData: '0x',
      signature: '0x',
    }
    const hash = await read<Hex>(chain, address, ENTRY_POINT_ABI, 'getUserOpHash', [operation])
    signed.push({ ...operation, signature: await owner.signMessage({ message: { raw: hash } }) })
  }
  const args = [signed, chain.deployer]
  return {
    to: address,
    data: encodeFunctionData<Abi, string>({ abi: ENTRY_POINT_ABI, functionName: 'handleOps', args }),
  }
}

function inHalves(high: bigint, low: bigint): Hex {
  return concatHex([numberToHex(high, { size: 16 }), numberToHex(low, { size: 16 })])
}
