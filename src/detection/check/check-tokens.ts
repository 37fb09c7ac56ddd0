import type { ChainConfig, TokenConfig } from '../../chains/chains-file.ts'
import { readDecimals } from '../../contracts/price-feed.ts'
import { decodeText, readSymbol } from '../../contracts/returned-texts.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type CheckedFact, judgeOf } from './checked-fact.ts'
import { type CheckedNode, isWord, readContract } from './checked-node.ts'

/** Checks the decimals and the symbol of each token. @throws RpcError when the node does not answer */
export async function* checkTokens(node: CheckedNode, { tokens }: ChainConfig): AsyncGenerator<CheckedFact, void> {
  for (const token of tokens) {
    yield await checkDecimals(node, token)
    yield await checkSymbol(node, token)
  }
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

async function checkSymbol(node: CheckedNode, { symbol, address }: TokenConfig): Promise<CheckedFact> {
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
      .replace(/\.E$/, '')
      .replace(/(?<=.)0$/, '')
  return plain(a) === plain(b)
}
