/** What is typed for a new request, and what the service says of it. */
import type { FieldViolation } from '@waybill/client'

/** The fields as they are typed; empty ones are left out of the terms. */
export const noTerms = {
  payee: '',
  amount: '',
  invoiceCurrency: '',
  paymentCurrency: '',
  reference: '',
  refundAddress: '',
  /** Of an input of date and time, in the browser's zone: `2026-11-24T10:00`. */
  expiresAt: '',
}

export type TypedTerms = Readonly<typeof noTerms>
export type TermName = keyof TypedTerms

/** What is sent. An invoice without a currency of its own is in the one it is paid in. */
export function termsOf(typed: TypedTerms) {
  const trimmed = Object.entries(typed).map(([name, text]) => [name, text.trim()])
  const { paymentCurrency, invoiceCurrency, reference, refundAddress, expiresAt, ...needed } = Object.fromEntries(
    trimmed,
  ) as TypedTerms
  return {
    ...needed,
    paymentCurrency,
    invoiceCurrency: invoiceCurrency === '' ? paymentCurrency : invoiceCurrency,
    ...(reference !== '' && { reference }),
    ...(refundAddress !== '' && { refundAddress }),
    ...(expiresAt !== '' && { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

/**
 * What the service finds wrong, at the fields where it was typed.
 *
 * @param required - says that a field is needed
 */
export function sayViolations(
  violations: readonly FieldViolation[],
  required: string,
): Readonly<Partial<Record<TermName, string>>> {
  return Object.fromEntries(
    violations
      // It is sent with the payment currency, which is missing then.
      .filter(({ field, reason }) => field !== 'invoiceCurrency' || reason !== 'MISSING_FIELD')
      .map(({ field, reason, description }) => [
        // The network is the second half of the payment currency.
        field === 'network' ? 'paymentCurrency' : field,
        reason === 'MISSING_FIELD' && field !== 'network' ? required : sentenceOf(field, description),
      ]),
  )
}

/** `payee: "0x12" is not …` → `"0x12" is not …`, since it stands at the field. */
function sentenceOf(field: string, description: string): string {
  const prefix = `${field}: `
  return description.startsWith(prefix) ? description.slice(prefix.length) : description
}

/** A moment from now as an input of date and time shows it, in the browser's zone. */
export function localMinuteIn(hours: number, now: Date): string {
  const at = new Date(now.getTime() + hours * 3_600_000)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
