import { type TokenDirectory } from '../../chains/token-directory.ts'
import { formatAddress } from '../../domain/address.ts'
import { symbolOfCurrency, type Token } from '../../domain/currency.ts'
import { formatAmount } from '../../domain/decimal.ts'
import type { RoutesAnswer } from '../../domain/route.ts'
import type { Step } from '../gas/steps.ts'
import type { Quote } from '../plans/provider.ts'
import type { Payment } from '../question/due-payment.ts'

/** What the messages of a route's steps are about. */
interface StepTerms {
  readonly payment: Payment
  /** What is paid for. */
  readonly due: Pick<RoutesAnswer, 'amount' | 'currency'>
  /** What leaves the wallet. */
  readonly source: Token
  readonly quote: Pick<Quote, 'maxPulled'>
  readonly tokens: TokenDirectory
}

/** One sentence that tells the payer what a transaction does, to be read before signing. */
export function stepMessage({ kind, effect }: Step, terms: StepTerms): string {
  const { payment, source } = terms
  const { destination } = payment
  const most = `${formatAmount(terms.quote.maxPulled, source.decimals)} ${source.symbol}`
  switch (kind) {
    case 'APPROVE_RESET':
    case 'APPROVE': {
      if (effect?.kind !== 'ALLOWANCE') return 'Let the payment contract take what is paid.'
      const token = terms.tokens.byAddress(source.chain, effect.token) ?? source
      const amount = `${formatAmount(effect.amount, token.decimals)} ${token.symbol}`
      return kind === 'APPROVE'
        ? `Let the contract ${formatAddress(effect.spender)} take up to ${amount} from the wallet.`
        : `Take back what the contract ${formatAddress(effect.spender)} may take: ${token.symbol} demands it before the amount changes.`
    }
    case 'SWAP':
      return `Swap at most ${most} into ${destination.symbol}, which stays in the wallet.`
    case 'PAY': {
      const due = `${terms.due.amount} ${symbolOfCurrency(terms.due.currency)}`
      const to = formatAddress(payment.request.payee)
      const isConverted = terms.due.currency !== destination.id
      const paid = isConverted ? `Pay ${due} to ${to} in ${destination.symbol}` : `Pay ${due} to ${to}`
      return isConverted || source.id !== destination.id ? `${paid}, with at most ${most}.` : `${paid}.`
    }
  }
}
