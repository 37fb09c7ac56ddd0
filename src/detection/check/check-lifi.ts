import type { LifiConfig } from '../../chains/chains-file.ts'
import { addressOfWord, FACET_QUESTIONS, RECEIVER_QUESTIONS } from '../../contracts/lifi-calldata.ts'
import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type CheckedFact, judgeOf } from './checked-fact.ts'
import { type CheckedNode, isWord, readContract } from './checked-node.ts'

/**
 * Checks that LI.FI's diamond has the functions that wallets call, and that its receiver works with the contracts that the file names.
 *
 * @throws RpcError when the node does not answer
 */
export async function* checkLifi(node: CheckedNode, lifi: LifiConfig): AsyncGenerator<CheckedFact, void> {
  for (const { name, data } of FACET_QUESTIONS) {
    const judge = judgeOf('lifi', name)
    const facet = await readAddress(node, lifi.diamond, data)
    if (facet === undefined) yield judge('unknown', 'facetAddress() answers no address')
    else if (isZeroAddress(facet)) yield judge('note', 'the diamond does not have it: quotes that call it fail')
    else yield judge('ok', `in ${facet}`)
  }
  for (const [name, data] of Object.entries(RECEIVER_QUESTIONS)) {
    const inFile = lifi[name as keyof typeof RECEIVER_QUESTIONS]
    if (inFile === undefined) continue
    const judge = judgeOf('lifi', `receiver ${name}`)
    const onChain = await readAddress(node, lifi.receiverAcrossV4, data)
    if (onChain === undefined) yield judge('wrong', `the receiver has no ${name}: another contract?`)
    else if (onChain === inFile) yield judge('ok', onChain)
    else yield judge('wrong', `${onChain}, and ${inFile} in the file`)
  }
}

async function readAddress(node: CheckedNode, to: Address, data: Hex): Promise<Address | undefined> {
  const answer = await readContract(node, { to, data })
  return answer instanceof RpcError || !isWord(answer) ? undefined : addressOfWord(answer.toLowerCase() as Hex)
}
