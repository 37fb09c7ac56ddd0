import type { DemoFileChain } from '../demo-file.ts'
import { type Rpc, toQuantity } from '../network/rpc.ts'
import {
  DemoAnswerError,
  type FoundPayment,
  makeRequest,
  type RunningDemo,
  waitFor,
  waitForPayment,
  waitForReceipt,
} from '../running-demo.ts'
import { payAsWallet, type Say } from './pay-as-wallet.ts'

/** The wallet of demo.json that pays in tokens on any chain. */
const PAYER = 'direct'
const ROUTE = 'REQUEST_NETWORK_PAYMENT'

/**
 * Pays a dollar on a chain, removes its block by a reorg, shows that the payment is gone, and has the same transaction mined again: the payment
 * returns with the same id. Other transactions of the removed blocks are sent again too.
 *
 * @returns whether the id is the same
 */
export async function showReorg(
  demo: RunningDemo,
  chain: DemoFileChain,
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<boolean> {
  const rpc = demo.rpcOf(chain)
  const currency = `USDC-${chain.name}`
  const { paymentReference } = await makeRequest(demo, {
    amount: '1',
    invoiceCurrency: currency,
    paymentCurrency: currency,
    network: chain.name,
  })
  const wallet = demo.file.wallets[PAYER]?.address ?? ''
  const paid = await payAsWallet(demo, { wallet, route: ROUTE, paymentReference }, { say, signal })

  const removed = await removeBlocks(rpc, paid)
  say('reorg', `anvil_reorg ${removed.depth}`, `the blocks of ${chain.name} from ${paid.blockNumber} on are replaced`)
  const gone = await waitFor(`the removal of payment ${paid.id}`, () => seeGone(demo, paid.id), signal)
  say('gone', `GET /v1/payments/${paid.id}`, String(gone.status), gone.message)

  await sendAgain(rpc, removed.transactions)
  const { blockNumber } = await waitForReceipt(rpc, paid.txHash, signal)
  say('mined', paid.txHash, `again in block ${blockNumber}`)
  const back = await waitForPayment(demo, { paymentReference, hash: paid.txHash }, signal)
  const there = await demo.get<FoundPayment>(`/v1/payments/${paid.id}`)
  say('back', `GET /v1/payments/${there.id}`, '200', `${there.amount} ${there.currency}`, there.status)
  return back.id === paid.id
}

/** Replaces a payment's block and all later ones by empty blocks. @returns their number, and the signed transactions that were in them */
async function removeBlocks(
  rpc: Rpc,
  { blockNumber, txHash }: FoundPayment,
): Promise<{ depth: number; transactions: string[] }> {
  const block = Number(blockNumber)
  const transactions: string[] = []
  for (;;) {
    const head = Number(await rpc.call<string>('eth_blockNumber'))
    for (let number = block; number <= head; number++) transactions.push(...(await readTransactions(rpc, number)))
    const depth = head - block + 1
    await rpc.call('anvil_reorg', [depth, []])
    // The clock may have mined a block meanwhile; then one block too few was removed.
    if (!(await readHashes(rpc, block)).includes(txHash)) return { depth, transactions }
  }
}

async function readHashes(rpc: Rpc, number: number): Promise<readonly string[]> {
  const params = [toQuantity(number), false]
  return (await rpc.call<{ transactions: string[] }>('eth_getBlockByNumber', params)).transactions
}

async function readTransactions(rpc: Rpc, number: number): Promise<string[]> {
  const hashes = await readHashes(rpc, number)
  return Promise.all(hashes.map((hash) => rpc.call<string>('eth_getRawTransactionByHash', [hash])))
}

/** The node refuses a transaction whose nonce is used already: a feed has moved again, or somebody has made another payment. */
async function sendAgain(rpc: Rpc, transactions: readonly string[]): Promise<void> {
  for (const transaction of transactions) await rpc.call('eth_sendRawTransaction', [transaction]).catch(() => undefined)
}

async function seeGone({ get }: RunningDemo, id: string): Promise<DemoAnswerError | undefined> {
  try {
    await get(`/v1/payments/${id}`)
    return undefined
  } catch (error) {
    if (error instanceof DemoAnswerError && error.status === 404) return error
    throw error
  }
}
