/**
 * The request whose payment is pending. A payment becomes final in the end and cannot go back, so from time to time another
 * request takes over. It is on the chain with slow finality and is replaced before its payment is final: a reader of its reference finds
 * the payment pending for some more minutes.
 */
import type { Address, Hex } from 'viem'
import { keccak256 } from 'viem/utils'
import { formatAmount, parseAmount } from '../src/domain/decimal.ts'
import { type DemoRequests, type DemoRequestTerms, draftTerms, referenceOf } from './history/demo-requests.ts'
import { decimalsOf, encodePlannedPayment } from './history/planned-payment.ts'
import { createRandom, drawCents } from './history/random.ts'
import { assertSucceeded } from './network/chain-client.ts'
import type { Clock } from './network/clock.ts'
import { ZERO_ADDRESS } from './network/demo-contracts.ts'
import type { DemoChain } from './network/network.ts'
import { toQuantity } from './network/rpc.ts'

const SYMBOL = 'USDC'
/** The request is replaced after five sixths of the blocks to finality, about as often as somebody pays on this chain in the history. */
const RENEW_AFTER = { share: 5n, of: 6n }

export interface PendingRequest {
  terms: DemoRequestTerms
  says: string
}

interface Current {
  readonly pending: PendingRequest
  /** That of its payment. */
  readonly block: bigint
}

export type PendingRequestKeeper = ReturnType<typeof createPendingRequestKeeper>

export function createPendingRequestKeeper(
  chain: DemoChain,
  { requests, clock, now }: { requests: DemoRequests; clock: Clock; now: () => Date },
) {
  const { client, spec, deployed, people } = chain
  const payee = people.payees[0] as Address
  let current: Current | undefined

  /** The payer's nonce determines the request, so nothing has to be stored between starts. */
  const describe = (serial: number): PendingRequest => {
    const amount = formatAmount(BigInt(drawCents(createRandom(serial))), 2)
    const terms = draftTerms({
      name: `pending ${serial}`,
      payee,
      amount,
      symbol: SYMBOL,
      chain: spec.name,
      reference: `demo-pending-${serial}`,
      createdAtSec: Math.floor(now().getTime() / 1000),
    })
    const says = `Pending: ${amount} ${SYMBOL} on ${spec.name} are paid but not final yet. About every quarter of an hour demo.json names a new request here; each stays pending for twenty minutes.`
    return { terms, says }
  }

  const readNonce = async (): Promise<number> =>
    Number(await client.rpc.call<Hex>('eth_getTransactionCount', [people.pendingPayer, 'latest']))

  /** The block of a request's payment; undefined when it is final already. */
  async function findBlock({ terms }: PendingRequest, headBlock: bigint): Promise<bigint | undefined> {
    const depth = BigInt(spec.finalityDepth)
    const fromBlock = toQuantity(headBlock > depth ? headBlock - depth : 0n)
    const topics = [null, keccak256(referenceOf(terms))]
    const [log] = await client.rpc.call<{ blockNumber: Hex }[]>('eth_getLogs', [{ fromBlock, topics }])
    return log && BigInt(log.blockNumber)
  }

  async function makeAndPay(): Promise<Current> {
    const pending = describe(await readNonce())
    await requests.create([pending.terms])
    const call = encodePlannedPayment(spec, deployed, {
      atSec: Math.floor(now().getTime() / 1000),
      payer: people.pendingPayer,
      payee,
      paymentReference: referenceOf(pending.terms),
      symbol: SYMBOL,
      amount: parseAmount(pending.terms.amount, decimalsOf(spec, SYMBOL)) ?? 0n,
      feeAmount: 0n,
      feeAddress: ZERO_ADDRESS,
      conversion: false,
      exact: true,
    })
    const hash = await client.send(people.pendingPayer, call, { maxPriorityFeePerGas: spec.tipPerGas })
    await clock.mineNow()
    return { pending, block: (await assertSucceeded(client, hash)).blockNumber }
  }

  async function findCurrent(headBlock: bigint): Promise<Current | undefined> {
    const pending = describe((await readNonce()) - 1)
    const block = await findBlock(pending, headBlock)
    if (block === undefined) return undefined
    await requests.create([pending.terms])
    return { pending, block }
  }

  return {
    /** The current pending request; creates and pays a new one when there is none or it is due to be replaced. */
    async keep(): Promise<PendingRequest> {
      const { number: headBlock } = await client.head()
      current ??= await findCurrent(headBlock)
      const isDue = ({ block }: Current) =>
        (headBlock - block) * RENEW_AFTER.of >= BigInt(spec.finalityDepth) * RENEW_AFTER.share
      if (current === undefined || isDue(current)) current = await makeAndPay()
      return current.pending
    },
  }
}
