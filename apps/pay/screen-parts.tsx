/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatMoney, formatShortAmount } from '../shared/format-amount.ts'
import { shortAddress } from '../shared/sentence.ts'
import { payTexts } from './language.ts'

/** One screen: its heading gets the focus when it appears, so that a screen reader says what changed. */
export function Screen({ title, tone, children }: { title: string; tone?: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (isFirst) isFirst = false
    else heading.current?.focus()
  }, [title])
  return (
    <section class={`screen card tinted stack gap-3 ${tone ?? ''}`}>
      <h2 ref={heading} tabIndex={-1}>
        {title}
      </h2>
      {children}
    </section>
  )
}

/** The first screen of a visit leaves the focus where the browser begins. */
let isFirst = true

/** After this time without an answer a wallet counts as silent: many open no window of their own. */
const SILENT_MS = 15_000

/** Whether there has been no answer for a while. @param question - what a wallet was asked, or what is awaited; undefined while nothing is open */
export function useSilence(question: unknown, silentMs = SILENT_MS): boolean {
  const [silent, setSilent] = useState<unknown>()
  useEffect(() => {
    if (question === undefined) return
    const timer = setTimeout(() => setSilent(question), silentMs)
    return () => {
      clearTimeout(timer)
      setSilent(undefined)
    }
  }, [question])
  return question !== undefined && silent === question
}

interface ButtonProps {
  readonly text: string
  /** What sets it apart from others: `main`, `plain`. */
  readonly kind?: string
  readonly isOff?: boolean
  readonly onClick: () => void
}

export function Button({ text, kind = '', isOff = false, onClick }: ButtonProps) {
  return (
    <button type="button" class={`button ${kind}`} disabled={isOff} onClick={onClick}>
      {text}
    </button>
  )
}

/** Shown of a list before somebody asks for more, so that what stands below stays in sight. */
const FIRST = 4

/** The first of a list, and the button that shows the others. */
export function useFirst<T>(all: readonly T[]) {
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen ? all : all.slice(0, FIRST)
  const left = all.length - shown.length
  const more = left > 0 && <Button text={payTexts.routes.others(left)} kind="plain" onClick={() => setOpen(true)} />
  return { shown, more }
}

/** Why there is no request to show. @param reason - of the service's table, or of the link */
export function Problem({ reason, onRetry }: { reason: string; onRetry?: () => void }) {
  const { problems, newLink, secretKey, later } = payTexts
  const kind = reason in problems ? (reason as keyof typeof problems) : 'OTHER'
  return (
    <main class="pay stack gap-5">
      <div class="notice bad stack gap-3" role="alert">
        <h1>{problems[kind]}</h1>
        <p>{kind === 'SECRET_KEY' ? secretKey : kind === 'OTHER' ? later : newLink}</p>
        {onRetry !== undefined && <Button text={payTexts.retry} onClick={onRetry} />}
      </div>
    </main>
  )
}

/** At most six digits that count; all of them once they are pressed. */
export function Money({ value, currency }: { value: string; currency: string }) {
  const [isWhole, setWhole] = useState(false)
  const [short, whole] = [formatMoney(value, currency, formatShortAmount), formatMoney(value, currency)]
  if (short === whole) return <span class="number">{whole}</span>
  return (
    <button type="button" class="bare number" title={whole} onClick={() => setWhole(!isWhole)}>
      {isWhole ? whole : short}
    </button>
  )
}

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, value }: { text: string; value: string }) {
  const { isCopied, copy } = useCopy(value)
  return <Button text={isCopied ? payTexts.copied : text} onClick={copy} />
}

function useCopy(value: string) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await copyText(value)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_500)
  }
  return { isCopied, copy: () => void copy() }
}

export function Address({ value }: { value: string }) {
  const { isCopied, copy } = useCopy(value)
  return (
    <button type="button" class="bare copy mono" title={value} onClick={copy}>
      <span class="unseen">{payTexts.copy} </span>
      {shortAddress(value)}
      <span role="status">{isCopied ? ` ${payTexts.copied}` : ''}</span>
    </button>
  )
}

/** A framed page may not use the clipboard unless its frame allows it; the older way needs no leave. */
async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const put = (event: ClipboardEvent) => {
      event.clipboardData?.setData('text/plain', text)
      event.preventDefault()
    }
    document.addEventListener('copy', put, { once: true })
    document.execCommand('copy')
    document.removeEventListener('copy', put)
  }
}

/** The line of a transaction, where there is one yet. */
export function SentTransaction({ hash, explorer }: { hash: string | undefined; explorer: string | undefined }) {
  if (hash === undefined) return null
  return (
    <p class="small quiet">
      {payTexts.transaction} <Transaction hash={hash} explorer={explorer} />
    </p>
  )
}

/** @param explorer - the template of an explorer's page, with `{hash}` */
export function Transaction({ hash, explorer }: { hash: string; explorer: string | undefined }) {
  const link = explorer?.replace('{hash}', hash)
  return (
    <>
      <Address value={hash} />
      {link !== undefined && /^https?:/.test(link) && (
        <>
          {' · '}
          <a href={link} target="_blank" rel="noreferrer">
            {payTexts.openTransaction}
          </a>
        </>
      )}
    </>
  )
}
