import { useMutation } from '@tanstack/react-query'
import type { WatchFilter, Waybill } from '@waybill/client'
import { useRef, useState } from 'react'
import { formatAmount } from '../../shared/format-amount.ts'
import { dayIn } from '../../shared/format-time.ts'
import { paymentsTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { searchFilters } from './filters.ts'

/** Saves the payments of the view as CSV, all pages of it. */
export function ExportView({ query }: { query: URLSearchParams }) {
  const waybill = useWaybill()
  const [rows, setRows] = useState(0)
  const running = useRef<AbortController>(undefined)
  const { start, cancel, progress, done, name } = paymentsTexts.export
  const saving = useMutation({
    mutationFn: async () => {
      running.current = new AbortController()
      setRows(0)
      const file = await read(waybill, searchFilters(query), running.current.signal, setRows)
      save(new Blob(file.parts, { type: 'text/csv' }), `${name}-${dayIn(new Date())}.csv`)
      return file.rows
    },
  })
  const isCancelled = running.current?.signal.aborted === true
  return (
    <div className="row">
      <span className="small quiet" role="status">
        {saving.isPending && progress(formatAmount(String(rows)))}
        {saving.isSuccess && done(formatAmount(String(saving.data)))}
        {saving.isError && !isCancelled && <span className="wrong">{saving.error.message}</span>}
      </span>
      {saving.isPending ? (
        <Button text={cancel} onClick={() => running.current?.abort()} />
      ) : (
        <Button text={start} onClick={() => saving.mutate()} />
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
