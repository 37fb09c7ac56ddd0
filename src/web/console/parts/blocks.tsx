/** What pages are made of: sections, names with their values, tables, links to the pages of a list. */
import type { Waybill } from '@waybill/client'
import type { ReactNode } from 'react'
import { Link } from './link.tsx'

export function Card({ id, title, children }: { id: string; title: string; children: ReactNode }) {
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

/** A name and its value; undefined is left out. */
export type Fact = readonly [name: string, value: ReactNode] | undefined

interface FactsProps {
  readonly facts: readonly Fact[]
  readonly className?: string
  readonly label?: string
}

/** Names and values in two columns. */
export function Facts({ facts, className = 'facts', label }: FactsProps) {
  return (
    <dl className={className} aria-label={label}>
      {given(facts).flatMap(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  )
}

/** Values side by side, each below its name. */
export function Figures({ facts, className }: { facts: readonly Fact[]; className: string }) {
  return (
    <dl className={className}>
      {given(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const given = (facts: readonly Fact[]) => facts.filter((fact) => fact !== undefined)

export interface Column {
  readonly title: string
  /** Numbers stand to the right. */
  readonly isRight?: boolean
  readonly isMono?: boolean
  /** It says what its row is about. */
  readonly isName?: boolean
}

interface TableProps {
  readonly label: string
  readonly columns: readonly Column[]
  /** Cells by column. */
  readonly rows: readonly (readonly ReactNode[])[]
  readonly className?: string
}

/** A table that is wider than its place is scrolled, by keys too. Its rows have no state of their own. */
export function Table({ label, columns, rows, className = 'table' }: TableProps) {
  return (
    <div className="table-scroll" role="group" tabIndex={0} aria-label={label}>
      <table className={className}>
        <thead>
          <tr>
            {columns.map(({ title, isRight }) => (
              <th key={title} scope="col" className={isRight === true ? 'right' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, index) => (
            <tr key={index}>
              {columns.map((column, at) => (
                <Cell key={column.title} column={column}>
                  {cells[at]}
                </Cell>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ column, children }: { column: Column; children: ReactNode }) {
  const { title, isRight = false, isMono = false, isName = false } = column
  const className = isRight ? 'right' : isMono ? 'mono' : undefined
  if (isName)
    return (
      <th scope="row" className={className}>
        {children}
      </th>
    )
  return (
    <td className={className} data-name={title}>
      {children}
    </td>
  )
}

interface PagingProps {
  readonly texts: { readonly label: string; readonly newer: string; readonly older: string }
  readonly pagination: Awaited<ReturnType<Waybill['searchPayments']>>['pagination']
  /** The place of the page that a cursor leads to. */
  readonly placeOf: (cursor: string) => string
}

export function Paging({ texts: { label, newer, older }, pagination, placeOf }: PagingProps) {
  const { prevCursor, nextCursor } = pagination ?? {}
  if (prevCursor === undefined && nextCursor === undefined) return null
  const link = (cursor: string | undefined, title: string) =>
    cursor === undefined ? (
      <span />
    ) : (
      <Link className="button" to={placeOf(cursor)}>
        {title}
      </Link>
    )
  return (
    <nav className="paging" aria-label={label}>
      {link(prevCursor, newer)}
      {link(nextCursor, older)}
    </nav>
  )
}
