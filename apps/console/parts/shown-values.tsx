/** How single values are shown: amounts, times, addresses, states. */
import { type ReactNode, useEffect, useState } from 'react'
import { formatAmount, formatShortAmount, formatUsd } from '../../shared/format-amount.ts'
import { formatDistance, formatTime, formatUtc, type StampedTime, toDate } from '../../shared/format-time.ts'
import { shortAddress } from '../../shared/sentence.ts'
import { consoleTexts } from '../../shared/texts.ts'
import { announce } from './announcer.tsx'
import { Button } from './fields.tsx'
import { useZone } from './hooks.ts'

interface AmountProps {
  readonly value: string | undefined
  readonly currency: string | undefined
  /** Shows every digit. */
  readonly whole?: boolean
  /** How many decimals fit; default 6. */
  readonly decimals?: number
  /** The currency stands in a column beside it. */
  readonly bare?: boolean
}

/** An amount with its currency; digits that do not fit are cut with a sign of it, and shown whole on hover. */
export function Amount({ value, currency, whole = false, decimals, bare = false }: AmountProps) {
  if (value === undefined || currency === undefined) return <Unknown />
  return (
    <span className="number amount" title={`${formatAmount(value)} ${currency}`}>
      {whole ? formatAmount(value) : formatShortAmount(value, decimals)}
      {!bare && ' '}
      {!bare && <span className="quiet">{currency}</span>}
    </span>
  )
}

/** The heading of a page about money, with what is marked beside it. */
export function AmountHeading({ value, currency, children }: { value: string; currency: string; children: ReactNode }) {
  return (
    <span className="row gap-3">
      <span className="number payment-amount">
        {formatAmount(value)} <span className="total quiet">{currency}</span>
      </span>
      {children}
    </span>
  )
}

export function Usd({ value }: { value: string | undefined }) {
  if (value === undefined) return <Unknown />
  return (
    <span className="number" title={`${formatAmount(value)} USD`}>
      {formatUsd(value)}
    </span>
  )
}

interface TimeProps {
  readonly at: StampedTime | Date | undefined
  readonly distance?: boolean
}

/** A moment in the viewer's zone, with UTC on hover. */
export function Time({ at, distance = false }: TimeProps) {
  const zone = useZone()
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
  const { copy, isCopied } = useCopy(value)
  if (value === undefined || value === '') return <Unknown />
  const shown = whole ? value : shortAddress(value)
  return (
    <>
      <button
        type="button"
        className={isCopied ? 'bare copy mono is-copied' : 'bare copy mono'}
        title={value}
        aria-label={`${texts.copy} ${shown}`}
        onClick={copy}
      >
        {shown}
      </button>
      {link !== undefined && (
        <>
          {' '}
          <a
            href={link}
            target="_blank"
            rel="noreferrer"
            aria-label={`${texts.openExplorer} ${value}`}
            title={texts.openExplorer}
          >
            ↗
          </a>
        </>
      )}
    </>
  )
}

/** A button that copies a text whole. */
export function CopyButton({ value, text, kind = '' }: { value: string; text: string; kind?: string }) {
  const { copy, isCopied } = useCopy(value)
  return <Button text={isCopied ? consoleTexts.values.copied : text} kind={kind} onClick={copy} />
}

/** Copies a text, and knows for a moment that it has. */
function useCopy(text = '') {
  const [copied, setCopied] = useState<string>()
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    announce(consoleTexts.values.copied)
    setCopied(text)
    setTimeout(() => setCopied(undefined), 1_500)
  }
  return { copy: () => void copy(), isCopied: copied === text }
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
