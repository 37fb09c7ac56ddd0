/** How single values are shown: amounts, times, addresses, states. */
import { type ReactNode, useEffect, useState } from 'react'
import { formatAmount, formatShortAmount, formatUsd } from '../../look/format-amount.ts'
import { formatDistance, formatTime, formatUtc, type StampedTime, toDate } from '../../look/format-time.ts'
import { shortAddress } from '../../look/short-address.ts'
import { consoleTexts } from '../../look/texts.ts'
import { useZone } from './zone.ts'

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

export function Usd({ value }: { value: string | undefined }) {
  if (value === undefined) return <Unknown />
  return (
    <span className="number" title={`${formatAmount(value)} USD`}>
      {formatUsd(value)}
    </span>
  )
}

/** A moment in the viewer's zone, with UTC on hover. */
export function Time({ at, distance = false }: { at: StampedTime | undefined; distance?: boolean }) {
  const zone = useZone()
  if (at === undefined) return <Unknown />
  const date = toDate(at)
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

/** An address, hash or reference, shortened; a click copies it whole. */
export function Copyable({
  value,
  whole = false,
  link,
}: {
  value: string | undefined
  whole?: boolean
  link?: string | undefined
}) {
  const { copy, copied, openExplorer } = consoleTexts.values
  const [isCopied, setCopied] = useState(false)
  if (value === undefined || value === '') return <Unknown />
  const write = async () => {
    await navigator.clipboard.writeText(value)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_500)
  }
  const shown = whole ? value : shortAddress(value)
  return (
    <span className="copyable">
      <button type="button" className="copy mono" title={value} onClick={() => void write()}>
        <span className="unseen">{copy} </span>
        {shown}
        <span className="copy-mark" aria-hidden="true">
          {isCopied ? '✓' : '⧉'}
        </span>
      </button>
      <span className="unseen" role="status">
        {isCopied ? copied : ''}
      </span>
      {link !== undefined && (
        <a href={link} target="_blank" rel="noreferrer" aria-label={`${openExplorer} ${value}`} title={openExplorer}>
          ↗
        </a>
      )}
    </span>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>
}

export function Unknown() {
  return (
    <span className="quiet" title={consoleTexts.values.unknown}>
      –<span className="unseen">{consoleTexts.values.unknown}</span>
    </span>
  )
}
