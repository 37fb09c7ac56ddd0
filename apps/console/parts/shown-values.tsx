/** How single values are shown: amounts, times, addresses, states. */
import { type ReactNode, useEffect, useState } from 'react'
import { formatAmount, formatShortAmount, formatUsd } from '../../shared/format-amount.ts'
import { formatDistance, formatTime, formatUtc, type StampedTime, toDate } from '../../shared/format-time.ts'
import { shortAddress } from '../../shared/sentence.ts'
import { consoleTexts } from '../../shared/texts.ts'
import { announce } from './announcer.tsx'
import { useZone } from './hooks.ts'

interface AmountProps {
  readonly value: string
  readonly currency: string
  /** Shows every digit. */
  readonly whole?: boolean
  /** How many decimals fit; default 6. */
  readonly decimals?: number
  /** The currency stands in a column beside it. */
  readonly bare?: boolean
}

/** An amount with its currency; digits that do not fit are cut with a sign of it, and shown whole on hover. */
export function Amount({ value, currency, whole = false, decimals, bare = false }: AmountProps) {
  const all = `${formatAmount(value)} ${currency}`
  return (
    <span className="number amount" title={all}>
      {whole ? formatAmount(value) : formatShortAmount(value, decimals)}
      {!bare && (
        <>
          {' '}
          <span className="currency">{currency}</span>
        </>
      )}
    </span>
  )
}

/** The heading of a page about money, with what is marked beside it. */
export function AmountHeading({ value, currency, children }: AmountProps & { children: ReactNode }) {
  return (
    <span className="payment-head row">
      <span className="number payment-amount">
        {formatAmount(value)} <span className="currency">{currency}</span>
      </span>
      {children}
    </span>
  )
}

interface MaybeAmountProps extends Omit<AmountProps, 'value' | 'currency'> {
  readonly value: string | undefined
  readonly currency: string | undefined
}

/** An amount that may not be known. */
export function MaybeAmount({ value, currency, ...rest }: MaybeAmountProps) {
  return value === undefined || currency === undefined ? <Unknown /> : <Amount {...{ value, currency, ...rest }} />
}

export function Usd({ value }: { value: string | undefined }) {
  if (value === undefined) return <Unknown />
  return (
    <span className="number" title={`${formatAmount(value)} USD`}>
      {formatUsd(value)}
    </span>
  )
}

/** A moment in the viewer's zone, with UTC on hover. */
export function Time(props: TimeProps) {
  return <ZonedTime {...props} zone={useZone()} />
}

interface TimeProps {
  readonly at: StampedTime | Date | undefined
  readonly distance?: boolean
}

/** The same where somebody has the zone, as a list has for all its rows. */
export function ZonedTime({ at, zone, distance = false }: TimeProps & { zone: string }) {
  if (at === undefined) return <Unknown />
  const date = at instanceof Date ? at : toDate(at)
  return (
    <time dateTime={date.toISOString()} title={formatUtc(date)}>
      {distance ? <Distance at={date} /> : formatTime(date, zone)}
    </time>
  )
}

/** How long ago, kept current. */
function Distance({ at }: { at: Date }) {
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 5_000)
    return () => clearInterval(timer)
  }, [])
  return formatDistance(at, now)
}

interface CopyableProps {
  readonly value: string | undefined
  readonly whole?: boolean
  readonly link?: string | undefined
}

/** An address, hash or reference, shortened; a click copies it whole. */
export function Copyable({ value, whole = false, link }: CopyableProps) {
  const texts = consoleTexts.values
  const { copy, copied } = useCopy(texts.copied)
  if (value === undefined || value === '') return <Unknown />
  const shown = whole ? value : shortAddress(value)
  return (
    <span className="copyable">
      <button
        type="button"
        className={copied === value ? 'bare copy mono is-copied' : 'bare copy mono'}
        title={value}
        aria-label={`${texts.copy} ${shown}`}
        onClick={() => void copy(value)}
      >
        {shown}
      </button>
      {link !== undefined && (
        <a
          href={link}
          target="_blank"
          rel="noreferrer"
          aria-label={`${texts.openExplorer} ${value}`}
          title={texts.openExplorer}
        >
          ↗
        </a>
      )}
    </span>
  )
}

/** Copies texts, and knows for a moment which. @param says - what a screen reader says then */
export function useCopy(says: string) {
  const [copied, setCopied] = useState<string>()
  const copy = async (text: string) => {
    await navigator.clipboard.writeText(text)
    announce(says)
    setCopied(text)
    setTimeout(() => setCopied(undefined), 1_500)
  }
  return { copy, copied }
}

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>
}

export function Unknown() {
  const { unknown } = consoleTexts.values
  return (
    <span className="quiet" role="img" title={unknown} aria-label={unknown}>
      –
    </span>
  )
}
