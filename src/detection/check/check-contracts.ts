import type { ChainConfig, PaymentContractConfig, ScreeningConfig, TokenConfig } from '../../chains/chains-file.ts'
import { configuredAddresses } from '../../chains/configured-addresses.ts'
import { decodeIsSanctioned, readIsSanctioned } from '../../contracts/contract-reads.ts'
import { readDecimals } from '../../contracts/price-feed.ts'
import { decodeText, readSymbol } from '../../contracts/returned-texts.ts'
import { toQuantity } from '../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { ask, type CheckedFact, type CheckedNode, isWord, judgeOf, readContract } from './checked-node.ts'

/**
 * Checks that there is code at every address of the chains file, that each payment contract was created at its `fromBlock`, and that the screening
 * oracle answers.
 *
 * @throws RpcError when the node does not answer
 */
export async function* checkContracts(
  node: CheckedNode,
  config: ChainConfig,
  head: number,
): AsyncGenerator<CheckedFact, void> {
  for (const named of contractsOf(config)) yield await checkCode(node, named)
  for (const contract of config.contracts) yield await checkFromBlock(node, contract, head)
  if (config.screening !== undefined) yield await checkOracle(node, config.screening)
}

/** Checks that the screening oracle answers. @throws RpcError when the node does not answer */
async function checkOracle(node: CheckedNode, { oracle }: ScreeningConfig): Promise<CheckedFact> {
  const judge = judgeOf('screening', 'screening.oracle')
  const answer = await readContract(node, readIsSanctioned(oracle, ZERO_ADDRESS))
  if (answer instanceof RpcError) {
    return judge(answer.kind === 'REVERTED' ? 'wrong' : 'unknown', `isSanctioned() fails: ${answer.message}`)
  }
  const isAnswer = decodeIsSanctioned(answer.slice(2)) !== undefined
  return isAnswer ? judge('ok', oracle) : judge('wrong', 'isSanctioned() answers neither true nor false')
}

/** An address of the chains file, with what it is. */
export interface NamedAddress {
  readonly subject: string
  readonly address: Address
}

/** Every contract that the chains file names. */
export function contractsOf(config: ChainConfig): NamedAddress[] {
  const named = [...configuredAddresses(config)].map(([address, subject]) => ({ subject, address }))
  // A step of a conversion may be the chain's coin, whose address has no code.
  return named.filter(({ subject }) => subject !== 'conversion.paths.via')
}

const nameOf = ({ kind, version }: PaymentContractConfig) => `${kind} ${version}`

/** Whether there is code at an address; the node's error where it does not have the state of that block. */
async function hasCode(node: CheckedNode, address: Address, block: number | 'latest'): Promise<boolean | RpcError> {
  const tag = block === 'latest' ? block : toQuantity(block)
  const code = await ask(node, { method: 'eth_getCode', params: [address, tag] })
  return code instanceof RpcError ? code : code !== '0x' && code !== null
}

/** Checks that there is code at an address. @throws RpcError when the node does not answer */
export async function checkCode(node: CheckedNode, { subject, address }: NamedAddress): Promise<CheckedFact> {
  const judge = judgeOf('code', subject)
  const found = await hasCode(node, address, 'latest')
  if (found instanceof RpcError) return judge('unknown', found.message)
  return found ? judge('ok', address) : judge('wrong', `there is no contract at ${address}`)
}

async function checkFromBlock(node: CheckedNode, contract: PaymentContractConfig, head: number): Promise<CheckedFact> {
  const { address, fromBlock } = contract
  const judge = judgeOf('fromBlock', nameOf(contract))
  if (fromBlock > head) return judge('wrong', `block ${fromBlock} is above the head, ${head}`)
  const existed = fromBlock === 0 ? false : await hasCode(node, address, fromBlock - 1)
  const exists = await hasCode(node, address, fromBlock)
  if (existed === true) return judge('wrong', `it is older: payments before block ${fromBlock} are not found`)
  if (existed !== false) return judge('unknown', `the node has no state of block ${fromBlock - 1}`)
  if (exists instanceof RpcError) return judge('unknown', `the node has no state of block ${fromBlock}`)
  return exists
    ? judge('ok', `created at block ${fromBlock}`)
    : judge('note', `there is no contract at block ${fromBlock} yet`)
}

/** Checks the decimals of a token. @throws RpcError when the node does not answer */
export async function checkDecimals(
  node: CheckedNode,
  { symbol, address, decimals }: TokenConfig,
): Promise<CheckedFact> {
  const judge = judgeOf('decimals', symbol)
  const answer = await readContract(node, readDecimals(address))
  if (answer instanceof RpcError) {
    return judge(answer.kind === 'REVERTED' ? 'wrong' : 'unknown', `decimals() fails: ${answer.message}`)
  }
  if (!isWord(answer)) return judge('wrong', 'decimals() answers no number')
  const onChain = BigInt(answer)
  if (onChain === BigInt(decimals)) return judge('ok', `${decimals}`)
  return judge('wrong', `${onChain}, and ${decimals} in the file`)
}

/** Checks the symbol of a token. @throws RpcError when the node does not answer */
export async function checkSymbol(node: CheckedNode, { symbol, address }: TokenConfig): Promise<CheckedFact> {
  const judge = judgeOf('symbol', symbol)
  const answer = await readContract(node, readSymbol(address))
  const onChain = answer instanceof RpcError ? undefined : decodeText(answer)
  if (onChain === undefined) return judge('unknown', 'symbol() answers no text')
  if (onChain === symbol) return judge('ok', onChain)
  const detail = `${JSON.stringify(onChain)} on the chain`
  return isSameSymbol(onChain, symbol) ? judge('note', detail) : judge('wrong', `${detail}: another token?`)
}

/** Issuers write a tenge sign for T and append a 0 when a token is renamed; files append `.e` to bridged tokens, chains often do not. */
function isSameSymbol(a: string, b: string): boolean {
  const plain = (symbol: string) =>
    symbol
      .toUpperCase()
      .replace('₮', 'T')
      .replace(/\.E$|(?<=.)0$/, '')
  return plain(a) === plain(b)
}
