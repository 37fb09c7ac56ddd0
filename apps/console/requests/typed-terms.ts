/** What is typed for a new request, and what the service says of it. */
import type { FieldViolation } from '@waybill/client'
import { readAmount, sayUnreadAmount } from '../../shared/read-amount.ts'
import { sentence } from '../../shared/sentence.ts'
import { requestTexts } from '../../shared/texts.ts'

const { create: texts } = requestTexts

export type TermName = keyof typeof texts.fields
export const termNames = Object.keys(texts.fields) as readonly TermName[]

/** The fields as they are typed, without those that are empty. */
export type TypedTerms = Readonly<Partial<Record<TermName, string>>>

/** What is sent. An invoice without a currency of its own is in the one it is paid in. */
export function termsOf({ payee = '', amount: typed = '', paymentCurrency = '', ...typedTerms }: TypedTerms) {
  const { invoiceCurrency = paymentCurrency, expiresAt, allowedPayers, ...optional } = typedTerms
  const amount = readAmount(typed)
  return {
    payee,
    // The service refuses what may mean two amounts together with whatever else is wrong.
    amount: typeof amount === 'object' ? amount.either.join(' or ') : (amount ?? typed),
    paymentCurrency,
    invoiceCurrency,
    ...optional,
    ...(allowedPayers !== undefined && { allowedPayers: allowedPayers.split(/[\s,]+/).filter((text) => text !== '') }),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

/**
 * What the service finds wrong, at the fields where it was typed, in a merchant's words where there are some.
 *
 * @param amount - as it was typed
 */
export function sayViolations(
  violations: readonly FieldViolation[],
  amount: string,
): Readonly<Partial<Record<TermName, string>>> {
  return Object.fromEntries(
    violations
      // It is sent with the payment currency, which is missing then.
      .filter(({ field, reason }) => field !== 'invoiceCurrency' || reason !== 'MISSING_FIELD')
      .map((violation) => [
        // The network is the second half of the payment currency.
        violation.field === 'network' ? 'paymentCurrency' : violation.field.replace(/\[\d+\]$/, ''),
        sayViolation(violation, amount),
      ]),
  )
}

function sayViolation({ field, reason, description }: FieldViolation, amount: string): string {
  if (reason === 'MISSING_FIELD') return field === 'network' ? texts.noNetwork : texts.required
  if (reason === 'INVALID_AMOUNT') {
    const read = readAmount(amount)
    return sayUnreadAmount(typeof read === 'object' ? read : undefined)
  }
  const said: Readonly<Record<string, string>> = texts.wrong
  return said[reason] ?? sentence(sentenceOf(field, description))
}

/** `payee: "0x12" is not …` → `"0x12" is not …`, since it stands at the field. */
function sentenceOf(field: string, description: string): string {
  const prefix = `${field}: `
  return description.startsWith(prefix) ? description.slice(prefix.length) : description
}
