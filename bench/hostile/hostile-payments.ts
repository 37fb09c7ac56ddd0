/** The payments that hostile clients search: a hundred networks, currencies and wallets, so that a filter can name a hundred of each. */

const PAYMENTS = 50_000
const HUNDRED = Array.from({ length: 100 }, (_, n) => n)

export const NETWORKS = HUNDRED.map((n) => `NET${n}`)
export const SYMBOLS = HUNDRED.map((n) => `T${n}`)
export const WALLETS = HUNDRED.map((n) => `0x${(n + 1).toString(16).padStart(40, '0')}`)

/** The payments as lines for import. */
export function paymentLines(): string {
  return Array.from({ length: PAYMENTS }, (_, n) => {
    const network = NETWORKS[n % 100]
    const payment = {
      id: `0b7d2a31-6f0e-8c55-9d3b-${String(n).padStart(12, '0')}`,
      status: n % 50 === 0 ? 'FAILED' : 'CONFIRMED',
      timestamp: new Date(Date.UTC(2024, 0, 1) + n * 1_200_000).toISOString(),
      amount: String(n + 1),
      amountInUSD: String((n * 7_919) % 1_000_003),
      currency: `${SYMBOLS[(n >> 3) % 100]}-${network}`,
      network,
      payer: WALLETS[(n * 13) % 100],
      payee: WALLETS[(n * 7) % 31],
      txHash: `0x${n.toString(16).padStart(64, '0')}`,
      eventIndex: 0,
    }
    return `${JSON.stringify(payment)}\n`
  }).join('')
}
