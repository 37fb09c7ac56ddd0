import type { WatchFilter, Waybill } from '@waybill/client'
import { useRef, useState } from 'react'
import { formatAmount } from '../../look/format-amount.ts'
import { dayIn } from '../../look/format-time.ts'
import { paymentsTexts } from '../../look/texts.ts'
import { Button } from '../parts/fields.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { searchFilters } from './filters.ts'

type State =
  | { readonly is: 'idle' }
  | { readonly is: 'running'; readonly rows: number }
  | { readonly is: 'done'; readonly rows: number }
  | { readonly is: 'failed'; readonly message: string }

/** Saves the payments of the view as CSV, all pages of it. */
export function ExportView({ query }: { query: URLSearchParams }) {
  const waybill = useWaybill()
  const [state, setState] = useState<State>({ is: 'idle' })
  const running = useRef<AbortController>(undefined)
  const { start, cancel, progress, done, name } = paymentsTexts.export
  const run = async () => {
    running.current = new AbortController()
    setState({ is: 'running', rows: 0 })
    try {
      const { signal } = running.current
      const { parts, rows } = await read(waybill, searchFilters(query), signal, (count) =>
        setState({ is: 'running', rows: count }),
      )
      save(new Blob(parts, { type: 'text/csv' }), `${name}-${dayIn(new Date())}.csv`)
      setState({ is: 'done', rows })
    } catch (error) {
      const isCancelled = running.current.signal.aborted
      setState(isCancelled ? { is: 'idle' } : { is: 'failed', message: messageOf(error) })
    }
  }
  return (
    <div className="export row">
      <span className="small quiet" role="status">
        {state.is === 'running' && progress(formatAmount(String(state.rows)))}
        {state.is === 'done' && done(formatAmount(String(state.rows)))}
        {state.is === 'failed' && <span className="wrong">{state.message}</span>}
      </span>
      {state.is === 'running' ? (
        <Button text={cancel} onClick={() => running.current?.abort()} />
      ) : (
        <Button text={start} onClick={() => void run()} />
      )}
    </div>
  )
}

/** The pieces of the file, and how many payments stand in it. */
async function read(waybill: Waybill, filter: WatchFilter, signal: AbortSignal, onRows: (rows: number) => void) {
  const parts: Uint8Array<ArrayBuffer>[] = []
  // The first line names the columns.
  let rows = -1
  for await (const part of waybill.exportCsv(filter, { signal })) {
    parts.push(part)
    for (const byte of part) if (byte === NEW_LINE) rows++
    onRows(Math.max(rows, 0))
  }
  // The last line is empty.
  return { parts, rows: rows - 1 }
}

const NEW_LINE = 10

function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
