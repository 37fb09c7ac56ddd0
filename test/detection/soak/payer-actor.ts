/** Decides what is paid next on a chain: payments of all kinds, refunds, and events that are neither. */
import type { Address, Hex } from 'viem'
import {
  createRequestProxy,
  payByBatch,
  payByConversion,
  payBySwap,
  payCoinsByOlderFunction,
  payCoinsToProxy,
  payDirectly,
  payElsewhere,
  payFakeToken,
  payTogether,
  payTokensThroughProxy,
  payTokensToProxy,
  swapInVictimsName,
} from './acts.ts'
import { castOf, type Invoice, lower, openInvoice, type StoreRequest } from './invoices.ts'
import type { Plan } from './seeded-plan.ts'
import type { Act, SoakChain } from './soak-chain.ts'

/** A chain, and what is known of its invoices. */
export interface PayerActor {
  readonly invoices: Invoice[]
  /** Decides and sends the next transactions. Only this actor sends on the chain. */
  act(): Promise<void>
}

interface Payer {
  readonly chain: SoakChain
  readonly others: readonly SoakChain[]
  readonly plan: Plan
  readonly store: StoreRequest
  readonly invoices: Invoice[]
  /** SingleRequestProxies whose creation is not final yet. */
  readonly proxies: { readonly invoice: Invoice; readonly hash: Hex }[]
  /** Invoices that are stored after their payment. */
  readonly onLate: (invoice: Invoice) => void
}

const WEIGHTS = {
  exact: 6,
  partial: 6,
  overpaid: 2,
  again: 4,
  conversion: 4,
  batch: 3,
  swap: 3,
  together: 3,
  taxed: 3,
  older: 1,
  proxy: 3,
  refund: 10,
  late: 2,
  spoof: 8,
} as const

const SPOOFS = {
  fakeToken: 1,
  toOneself: 1,
  payeePaysHimself: 1,
  wrongChain: 1,
  strangersRefund: 2,
  strangersReturn: 1,
  lookAlike: 1,
  unlisted: 1,
  nothing: 1,
  otherToken: 1,
  plainForFiat: 1,
  conversionForPlain: 1,
  zeroTransfer: 1,
} as const

type Options = Pick<Payer, 'chain' | 'others' | 'plan' | 'store' | 'onLate'>

export function createPayerActor(options: Options): PayerActor {
  const payer: Payer = { ...options, invoices: [], proxies: [] }
  return { invoices: payer.invoices, act: () => actOnce(payer) }
}

async function actOnce(payer: Payer): Promise<void> {
  await useReadyProxy(payer)
  const acts = await decide(payer, payer.plan.weighted(WEIGHTS))
  await send(payer.chain, acts)
}

function send(chain: SoakChain, acts: readonly Act[]): Promise<Hex[]> {
  return chain.alone(async () => {
    const hashes: Hex[] = []
    for (const act of acts) hashes.push(await chain.send(act))
    return hashes
  })
}

async function open(payer: Payer, symbol?: string, options: { isFiat?: boolean } = {}): Promise<Invoice> {
  const { plan, chain, store, invoices } = payer
  const wanted = symbol ?? plan.pick(['USDC', 'USDC', 'USDT', 'DAI', 'ETH'])
  const { isFiat = false } = options
  const isShared = !isFiat && wanted !== 'ETH' && plan.chance(0.2)
  const invoice = await openInvoice({ plan, chain, symbol: wanted, isFiat, isShared }, store)
  invoices.push(invoice)
  return invoice
}

const somebody = ({ plan, chain }: Payer) => plan.pick(castOf(chain.accounts).payers)

/** A share of the amount, in hundredths, that a token without all decimals can pay. */
const share = ({ amount }: Invoice, hundredths: number) => (amount * BigInt(hundredths)) / 100n

async function decide(payer: Payer, kind: keyof typeof WEIGHTS): Promise<readonly Act[]> {
  const { plan, chain } = payer
  const from = somebody(payer)
  const fee = plan.chance(0.4) ? 10_000n : 0n
  switch (kind) {
    case 'exact': {
      const invoice = await open(payer)
      return [payDirectly(chain, { invoice, from, amount: invoice.amount }, { fee, kind })]
    }
    case 'partial': {
      const invoice = await open(payer)
      const parts = [share(invoice, plan.between(20, 60)), share(invoice, plan.between(20, 60))]
      return parts.map((amount) => payDirectly(chain, { invoice, from: somebody(payer), amount }, { fee, kind }))
    }
    case 'overpaid': {
      const invoice = await open(payer)
      return [payDirectly(chain, { invoice, from, amount: share(invoice, plan.between(101, 180)) }, { fee, kind })]
    }
    case 'again': {
      const invoice = recent(payer, ({ isFiat }) => !isFiat)
      if (invoice === undefined) return []
      return [payDirectly(chain, { invoice, from, amount: share(invoice, plan.between(10, 100)) }, { fee, kind })]
    }
    case 'conversion': {
      const invoice = await open(payer, plan.pick(['USDC', 'DAI', 'ETH']), { isFiat: true })
      const move = { invoice, from, amount: share(invoice, plan.pick([40, 100, 100])) }
      return [await chain.alone(() => payByConversion(chain, move))]
    }
    case 'batch':
      return [payByBatch(chain, await openSeveral(payer, plan.pick(['USDC', 'DAI', 'ETH']), from))]
    case 'swap': {
      const invoice = await open(payer, 'USDC')
      return [payBySwap(chain, { invoice, from, amount: invoice.amount })]
    }
    case 'together':
      return [payTogether(chain, await openSeveral(payer, plan.pick(['USDC', 'DAI', 'ETH']), from), from)]
    case 'taxed': {
      const invoice = await open(payer, 'TAX')
      return [payDirectly(chain, { invoice, from, amount: share(invoice, plan.between(50, 110)) }, { kind })]
    }
    case 'older': {
      const invoice = await open(payer, 'ETH')
      return [payCoinsByOlderFunction(chain, { invoice, from, amount: invoice.amount })]
    }
    case 'proxy': {
      const invoice = await open(payer, plan.pick(['USDC', 'ETH']))
      const [hash] = await send(chain, [createRequestProxy(chain, invoice, from)])
      if (hash !== undefined) payer.proxies.push({ invoice, hash })
      return []
    }
    case 'refund':
      return refund(payer)
    case 'late':
      return payLate(payer, from)
    case 'spoof':
      return spoof(payer, plan.weighted(SPOOFS), from)
  }
}

/** Moves for two or three new invoices; one of them may be paid twice in the same transaction. */
async function openSeveral(payer: Payer, symbol: string, from: Address) {
  const invoices = [await open(payer, symbol), await open(payer, symbol)]
  const [first] = invoices
  if (first !== undefined && payer.plan.chance(0.5)) invoices.push(first)
  return invoices.map((invoice) => ({ invoice, from, amount: share(invoice, payer.plan.between(30, 100)) }))
}

/** One of the latest invoices. */
function recent({ invoices, plan }: Payer, suits: (invoice: Invoice) => boolean): Invoice | undefined {
  const some = invoices.slice(-25).filter(suits)
  return some.length === 0 ? undefined : plan.pick(some)
}

const paidWith = ({ chain }: Payer, { reference, payee }: Invoice) =>
  chain.story.factsOf(reference).filter((fact) => fact.reference === reference && fact.to === lower(payee))

/** A refund by the payee or by their wallet, under the reference of the refund address or to a payer under the request's own. */
function refund(payer: Payer): readonly Act[] {
  const { plan, chain } = payer
  const { hotWallet } = castOf(chain.accounts)
  const invoice = recent(payer, (each) => !each.isFiat && paidWith(payer, each).length > 0)
  if (invoice === undefined) return []
  const facts = paidWith(payer, invoice)
  const from = plan.chance(0.3) ? hotWallet : invoice.payee
  const amount = plan.chance(0.5) ? invoice.amount : share(invoice, plan.between(10, 90))
  const payers = chain.accounts.filter((each) => facts.some(({ payer: known }) => known === lower(each)))
  const isPayerCertain = facts.every(({ payerNeedsTrace }) => !payerNeedsTrace)
  if (plan.chance(0.5) && payers.length > 0 && isPayerCertain) {
    return [
      payDirectly(chain, { invoice, from, to: plan.pick(payers), amount }, { kind: 'refund under its own reference' }),
    ]
  }
  const { refundReference: reference, refundAddress: to } = invoice
  return [payDirectly(chain, { invoice, from, to, amount, reference }, { kind: 'refund' })]
}

async function payLate(payer: Payer, from: Address): Promise<readonly Act[]> {
  const { plan, chain, invoices } = payer
  const kept: (() => Promise<void>)[] = []
  const store: StoreRequest = async (account, terms) => void kept.push(() => payer.store(account, terms))
  const invoice = await openInvoice({ plan, chain, symbol: 'USDC', isFiat: false, isShared: false }, store)
  payer.onLate(invoice)
  setTimeout(
    () => {
      Promise.all(kept.map((each) => each())).then(
        () => invoices.push(invoice),
        () => {},
      )
    },
    plan.between(0, 5_000),
  )
  return [payDirectly(chain, { invoice, from, amount: invoice.amount }, { kind: 'late' })]
}

/** Pays through the SingleRequestProxies whose creation is final now. */
async function useReadyProxy(payer: Payer): Promise<void> {
  const { chain, proxies, plan } = payer
  const [first] = proxies
  if (first === undefined) return
  const receipt = await chain.alone(() => chain.client.receipt(first.hash))
  const isFinal = receipt && Number(receipt.blockNumber) <= chain.story.head() - chain.spec.depth
  if (receipt !== undefined && !isFinal) return
  proxies.shift()
  if (receipt === undefined || !receipt.succeeded) return
  const log = receipt.logs.find(({ address }) => lower(address) === lower(chain.more.factory))
  if (log === undefined) return
  const proxy: Address = `0x${log.data.slice(26, 66)}`
  const { invoice } = first
  const move = { invoice, from: somebody(payer), amount: invoice.amount }
  if (invoice.token.address === undefined) await send(chain, [payCoinsToProxy(chain, move, proxy)])
  else if (plan.chance(0.5)) await send(chain, [payTokensThroughProxy(chain, move, proxy)])
  else await send(chain, payTokensToProxy(chain, move, proxy))
}

async function spoof(payer: Payer, kind: keyof typeof SPOOFS, from: Address): Promise<readonly Act[]> {
  const { plan, chain, others } = payer
  const { attacker } = castOf(chain.accounts)
  const needs = { plainForFiat: 'fiat', conversionForPlain: 'plain', zeroTransfer: 'usdc' } as const
  const invoice =
    kind in needs
      ? await open(payer, 'USDC', { isFiat: kind === 'plainForFiat' })
      : (recent(payer, ({ isFiat, token }) => !isFiat && token.symbol !== 'TAX') ?? (await open(payer)))
  const { amount } = invoice
  switch (kind) {
    case 'fakeToken':
      return [payFakeToken(chain, { invoice, from: attacker, amount: 100_000000n })]
    case 'toOneself':
      return [payDirectly(chain, { invoice, from: attacker, to: attacker, amount }, { kind })]
    case 'payeePaysHimself':
      return [payDirectly(chain, { invoice, from: invoice.payee, amount }, { kind })]
    case 'wrongChain':
      // The other chain has the same contracts at the same addresses.
      for (const other of others.slice(0, 1)) {
        await send(other, [payDirectly(other, { invoice, from: attacker, amount }, { kind })])
      }
      return []
    case 'strangersRefund': {
      const { refundReference: reference, refundAddress: to } = invoice
      return [payDirectly(chain, { invoice, from: plan.pick([attacker, from]), to, amount, reference }, { kind })]
    }
    case 'strangersReturn':
      return [payDirectly(chain, { invoice, from: attacker, to: from, amount }, { kind })]
    case 'lookAlike':
    case 'unlisted':
      return invoice.token.address === undefined ? [] : [payElsewhere(chain, { invoice, from: attacker, amount }, kind)]
    case 'nothing':
      return [payDirectly(chain, { invoice, from: attacker, amount: 0n }, { kind })]
    case 'otherToken':
      return invoice.token.symbol === 'USDT'
        ? []
        : [payDirectly(chain, { invoice, from: attacker, amount: 100_000000n, symbol: 'USDT' }, { kind })]
    case 'plainForFiat':
      return [payDirectly(chain, { invoice, from: attacker, amount: 100_000000n }, { kind })]
    case 'conversionForPlain':
      return [await chain.alone(() => payByConversion(chain, { invoice, from: attacker, amount: 10n ** 10n }))]
    case 'zeroTransfer':
      return [swapInVictimsName(chain, { invoice, from: attacker, amount })]
  }
}
