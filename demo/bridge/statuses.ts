import type { ExtendedTransactionInfo, FullStatusData } from '@lifi/types'
import type { Hex } from 'viem'
import type { Entry, Place } from './book.ts'
import { type BridgeChain, type BridgeToken, tokenAt } from './bridge-chain.ts'
import { termsOf } from './deposit.ts'
import { asToken, TOOL } from './quotes.ts'

/**
 * The status of a deposit in LI.FI's form.
 *
 * @param txHash - of the deposit or of the delivery
 * @returns undefined when no deposit belongs to that transaction
 */
export async function statusOf(
  chains: readonly BridgeChain[],
  entries: readonly Entry[],
  txHash: string,
): Promise<FullStatusData | undefined> {
  const wanted = txHash.toLowerCase()
  const entry = entries.find(({ deposited, delivered }) => deposited.txHash === wanted || delivered?.txHash === wanted)
  if (entry === undefined) return undefined
  const { id, deposit, deposited, delivered, closed } = entry
  const { payer, toToken, toAmount, fallbackTo } = termsOf(deposit)
  const destination = chains.find(({ chainId }) => BigInt(chainId) === deposit.toChainId) ?? deposited.chain
  const back = closed?.kind === 'RETURNED' ? closed : undefined
  const received = delivered ?? back
  const [sentToken, wantedToken] = [tokenAt(deposited.chain, deposit.token), tokenAt(destination, toToken)]
  const gotToken = delivered === undefined ? sentToken : wantedToken
  const gotAmount = delivered === undefined ? deposit.amount : toAmount
  return {
    transactionId: id,
    sending: await transactionOf(deposited, sentToken, deposit.amount),
    receiving:
      received === undefined ? { chainId: destination.chainId } : await transactionOf(received, gotToken, gotAmount),
    feeCosts: [],
    lifiExplorerLink: '',
    fromAddress: payer,
    toAddress: fallbackTo,
    tool: TOOL,
    metadata: { integrator: '' },
    ...verdict(entry),
  }
}

function verdict({ delivered, closed }: Entry): Pick<FullStatusData, 'status' | 'substatus'> {
  if (delivered !== undefined) {
    // When the call failed, the wallet got the tokens.
    return { status: 'DONE', substatus: delivered.isPaid ? 'COMPLETED' : 'PARTIAL' }
  }
  if (closed?.kind === 'RETURNED') return { status: 'DONE', substatus: 'REFUNDED' }
  return { status: 'PENDING', substatus: 'WAIT_DESTINATION_TRANSACTION' }
}

async function transactionOf(
  { chain, txHash }: Place,
  token: BridgeToken | undefined,
  amount: bigint,
): Promise<ExtendedTransactionInfo> {
  const receipt = await chain.client.receipt(txHash)
  const [gasPrice, gasUsed] = [receipt?.effectiveGasPrice ?? 0n, receipt?.gasUsed ?? 0n]
  return {
    txHash,
    chainId: chain.chainId,
    txLink: '',
    amount: amount.toString(),
    ...(token === undefined ? {} : { token: asToken(chain, token) }),
    gasPrice: gasPrice.toString(),
    gasUsed: gasUsed.toString(),
    gasToken: asToken(chain, chain.coin),
    gasAmount: (gasPrice * gasUsed).toString(),
    gasAmountUSD: '',
    timestamp: await timestampOf(chain, receipt?.blockHash),
  }
}

async function timestampOf({ client }: BridgeChain, blockHash: Hex | undefined): Promise<number> {
  if (blockHash === undefined) return 0
  const block = await client.rpc.call<{ timestamp: Hex } | null>('eth_getBlockByHash', [blockHash, false])
  return Number(block?.timestamp ?? 0)
}
