/** What pages are made of: sections, names with their values, tables, links to the pages of a list. */
import type { Waybill } from '@waybill/client'
import type { ReactNode } from 'react'
import { consoleTexts } from '../../shared/texts.ts'
import { LinkButton, linkedRow } from './link.tsx'
import { placeOf, useLocation } from './location.ts'

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

/** Names and values: in two columns, or as its class has them. */
export function Facts({ facts, className = 'facts', label }: FactsProps) {
  return (
    <dl className={className} aria-label={label}>
      {facts
        .filter((fact) => fact !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

interface TableProps {
  readonly label: string
  /** Their titles. */
  readonly columns: readonly string[]
  /** Cells by column. */
  readonly rows: readonly (readonly ReactNode[])[]
  /** The first and the last column of numbers, which stand to the right. */
  readonly numbers: readonly [first: number, last: number]
  /** The column that says what its row is about. */
  readonly name?: number
  /** `matrix` where a narrow screen shows columns too; of any other a row becomes a card. */
  readonly className?: string
  /** The place that each row links to as a whole, by a link of class `row-link` in it. */
  readonly links?: readonly string[]
}

/** A table that is wider than its place is scrolled, by keys too. Its rows have no state of their own. */
export function Table({ label, columns, rows, numbers: [first, last], name, className = 'cards', links }: TableProps) {
  const classOf = (column: number) => (column >= first && column <= last ? 'right' : undefined)
  return (
    <div className="table-scroll" role="group" tabIndex={0} aria-label={label}>
      <table className={`table ${className}`}>
        <thead>
          <tr>
            {columns.map((title, column) => (
              <th key={title} scope="col" className={classOf(column)}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, index) => (
            <tr key={index} {...(links?.[index] !== undefined && linkedRow(links[index]))}>
              {columns.map((title, column) => {
                const Cell = column === name ? 'th' : 'td'
                return (
                  <Cell
                    key={title}
                    className={classOf(column)}
                    scope={column === name ? 'row' : undefined}
                    data-name={title}
                  >
                    {cells[column]}
                  </Cell>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface PagingProps extends Pick<Awaited<ReturnType<Waybill['searchPayments']>>, 'pagination'> {
  readonly label?: string
  /** Of the address: which page is shown. */
  readonly parameter?: string
}

/** Leads to the pages before and after the one that is shown. */
export function Paging({ pagination, label = consoleTexts.paging.label, parameter = 'cursor' }: PagingProps) {
  const { path, query } = useLocation()
  const { newer, older } = consoleTexts.paging
  const { prevCursor, nextCursor } = pagination ?? {}
  if (prevCursor === undefined && nextCursor === undefined) return null
  const link = (cursor: string | undefined, title: string) =>
    cursor === undefined ? <span /> : <LinkButton to={placeOf(path, { [parameter]: cursor }, query)} text={title} />
  return (
    <nav className="paging row apart" aria-label={label}>
      {link(prevCursor, newer)}
      {link(nextCursor, older)}
    </nav>
  )
}
