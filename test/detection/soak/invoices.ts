/** The requests of the soak: stored through the service, known by heart. */
import { type Address, formatUnits, getAddress, type Hex, keccak256, toBytes } from 'viem'
import { COIN, type KnownRequest } from '../model/expected-state.ts'
import type { Plan } from './seeded-plan.ts'
import type { SoakChain } from './soak-chain.ts'

export const ACCOUNTS = ['shop', 'second', 'stranger'] as const
export type AccountName = (typeof ACCOUNTS)[number]

/** One reference, and what it is to each account that stored it. The first is the merchant. */
export interface Invoice {
  readonly network: string
  readonly reference: Hex
  readonly refundReference: Hex
  readonly refundAddress: Address
  /** A wallet that the soak can sign for. */
  readonly payee: Address
  readonly token: { readonly symbol: string; readonly address: Address | undefined; readonly decimals: number }
  readonly isFiat: boolean
  /** Base units of the invoice currency. */
  readonly amount: bigint
  readonly requests: readonly KnownRequest[]
}

/** Calls a service, whichever answers, until one does. */
export type StoreRequest = (account: AccountName, terms: object) => Promise<void>

export const lower = (address: string) => address.toLowerCase()

/** Last 8 bytes of the hash of request, salt and address. */
function referenceOf(requestId: string, salt: string, address: string): Hex {
  return `0x${keccak256(toBytes(lower(requestId + salt + address))).slice(-16)}`
}

/** Who the accounts of a chain are. */
export function castOf(accounts: readonly Address[]) {
  return {
    payers: accounts.slice(1, 9),
    merchants: accounts.slice(9, 15),
    hotWallet: accounts[15] as Address,
    attacker: accounts[16] as Address,
    feeTaker: accounts[17] as Address,
    victim: accounts[18] as Address,
  }
}

interface InvoiceTerms {
  readonly plan: Plan
  readonly chain: SoakChain
  /** `ETH`, or a token's symbol. */
  readonly symbol: string
  readonly isFiat: boolean
  /** Whether a second account stores the same request with another amount, and a stranger one with another token. */
  readonly isShared: boolean
}

/** Stores a new request of 10 to 500 dollars. Resolves when the service has stored it for all of its accounts. */
export async function openInvoice(terms: InvoiceTerms, store: StoreRequest): Promise<Invoice> {
  const { plan, chain, symbol, isFiat, isShared } = terms
  const { network } = chain.spec
  const cast = castOf(chain.accounts)
  const payee = plan.pick(cast.merchants)
  const requestId = `01${plan.hex(32)}`
  const salt = plan.hex(8)
  const refundAddress = getAddress(`0x${plan.hex(20)}`)
  const token = tokenOf(chain, symbol)
  const dollars = BigInt(plan.between(10, 500))
  const unit = 10n ** BigInt(isFiat ? 8 : token.decimals)
  const amount = isFiat || symbol !== 'ETH' ? dollars * unit : (dollars * unit) / 3_000n
  const reference = referenceOf(requestId, salt, payee)
  const refundReference = referenceOf(requestId, salt, refundAddress)

  const accounts: readonly AccountName[] = isShared ? ACCOUNTS : ['shop']
  const requests = accounts.map((account): KnownRequest => {
    const other = account === 'stranger' ? tokenOf(chain, symbol === 'USDC' ? 'DAI' : 'USDC') : token
    const isOwn = account === 'shop'
    const expected = account === 'second' ? amount * 2n : amount
    return {
      account,
      requestId,
      reference,
      refundReference: isOwn ? refundReference : undefined,
      refundAddress: isOwn ? lower(refundAddress) : undefined,
      payee: lower(payee),
      network,
      token: lower(other.address ?? COIN),
      decimals: other.decimals,
      amount: isFiat || account !== 'stranger' ? expected : rescaled(expected, token.decimals, other.decimals),
      isFiat,
      wallets: new Set(isOwn ? [lower(cast.hotWallet)] : []),
    }
  })
  for (const request of requests) {
    const currency = `${request.account === 'stranger' ? (symbol === 'USDC' ? 'DAI' : 'USDC') : symbol}-${network}`
    await store(request.account as AccountName, {
      requestId,
      salt,
      payee,
      network,
      amount: formatUnits(request.amount, isFiat ? 8 : request.decimals),
      invoiceCurrency: isFiat ? 'USD' : currency,
      paymentCurrency: currency,
      ...(request.refundAddress === undefined ? {} : { refundAddress }),
    })
  }
  return { network, reference, refundReference, refundAddress, payee, token, isFiat, amount, requests }
}

const rescaled = (units: bigint, from: number, to: number) => (units * 10n ** BigInt(to)) / 10n ** BigInt(from)

export function tokenOf({ deployed }: SoakChain, symbol: string): Invoice['token'] {
  if (symbol === 'ETH') return { symbol, address: undefined, decimals: 18 }
  const found = deployed.tokens.find((token) => token.symbol === symbol)
  if (found === undefined) throw new Error(`there is no ${symbol}`)
  return { symbol, address: found.address, decimals: found.decimals }
}
