/**
 * The live payer: every few seconds it creates a request on the next chain and pays it, so that there is something to watch.
 */
import type { Hex } from 'viem'
import { formatAmount } from '../domain/decimal.ts'
import type { Logger } from '../domain/logger.ts'
import { type DemoRequests, type DemoRequestTerms, draftTerms, referenceOf } from './history/demo-requests.ts'
import {
  cents,
  decimalsOf,
  encodePlannedPayment,
  fromUsd,
  type PlannedPayment,
  roundAmount,
  usdPrice,
} from './history/planned-payment.ts'
import { createRandom, type Random } from './history/random.ts'
import { assertSucceeded } from './network/chain-client.ts'
import { FIAT_DECIMALS, ZERO_ADDRESS } from './network/demo-contracts.ts'
import type { DemoChain } from './network/network.ts'

/** Four chains take turns, so each gets a payment every twenty seconds. */
export const PAYMENT_INTERVAL_MS = 5_000
const MIN_CENTS = 500
const CENTS_SPREAD = 50_000

interface LivePayer {
  /** Creates a request and pays it; the chain's clock mines the payment. */
  payOnce(): Promise<{ terms: DemoRequestTerms; hash: Hex }>
}

export function createLivePayer(
  chains: readonly DemoChain[],
  { requests, now, logger }: { requests: DemoRequests; now: () => Date; logger: Logger },
): LivePayer {
  const random = createRandom(now().getTime())
  const lastPaid = new Map<string, Hex>()
  let turn = 0

  /** A reverted payment leaves no event and would go unnoticed. */
  async function checkLast({ client, spec }: DemoChain): Promise<void> {
    const hash = lastPaid.get(spec.name)
    if (hash === undefined) return
    await assertSucceeded(client, hash).catch((error: unknown) => {
      logger.warn({ chain: spec.name, err: error }, 'a payment of the live payer failed')
    })
  }

  return {
    async payOnce() {
      const chain = chains[turn % chains.length]
      if (!chain) throw new RangeError('there is no chain to pay on')
      turn += 1
      await checkLast(chain)
      const { terms, payment } = planLivePayment(chain, { random, now: now() })
      await requests.create([terms])
      const call = encodePlannedPayment(chain.spec, chain.deployed, payment)
      const hash = await chain.client.send(payment.payer, call, { maxPriorityFeePerGas: chain.spec.tipPerGas })
      lastPaid.set(chain.spec.name, hash)
      logger.debug({ chain: chain.spec.name, hash }, 'the live payer paid')
      return { terms, hash }
    },
  }
}

function planLivePayment(
  { spec, people }: DemoChain,
  { random, now }: { random: Random; now: Date },
): { terms: DemoRequestTerms; payment: PlannedPayment } {
  const atSec = Math.floor(now.getTime() / 1000)
  const symbol = random.next() < 0.2 ? spec.native.symbol : random.pick(spec.tokens).symbol
  const conversion = random.next() < 0.2
  const decimals = conversion ? FIAT_DECIMALS : decimalsOf(spec, symbol)
  const usd = cents(MIN_CENTS + random.below(CENTS_SPREAD))
  const converted = fromUsd(spec, symbol, { usd, price: usdPrice(spec, symbol, atSec) })
  const amount = conversion ? usd : roundAmount(spec, symbol, converted)
  const terms = draftTerms({
    name: `live ${spec.name} ${now.getTime()}`,
    payee: people.livePayee,
    amount: formatAmount(amount, decimals),
    invoice: conversion ? 'USD' : undefined,
    symbol,
    chain: spec.name,
    reference: `live-${now.getTime()}`,
    createdAtSec: atSec,
  })
  const withFee = random.next() < 0.5
  const payment: PlannedPayment = {
    atSec,
    payer: people.livePayer,
    payee: people.livePayee,
    paymentReference: referenceOf(terms),
    symbol,
    amount,
    feeAmount: withFee ? amount / 200n : 0n,
    feeAddress: withFee ? people.feeCollector : ZERO_ADDRESS,
    conversion,
    exact: true,
  }
  return { terms, payment }
}
