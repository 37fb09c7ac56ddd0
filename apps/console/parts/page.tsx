import { type ReactNode, useEffect, useRef } from 'react'
import { Link } from './link.tsx'
import { goBackTo, isReturn } from './location.ts'

interface PageProps {
  /** Of the window, and the heading where there is no other. */
  readonly title: string
  readonly heading?: ReactNode
  /** Where this page was opened from. */
  readonly back?: { readonly to: string; readonly title: string }
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** The frame of one page: its heading gets the focus when the page is opened, so that a screen reader says where one is. */
export function Page({ title, heading = title, back, actions, children }: PageProps) {
  const headingRef = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Waybill`
  }, [title])
  useEffect(() => {
    if (isFirst) isFirst = false
    else headingRef.current?.focus({ preventScroll: isReturn() })
  }, [])
  return (
    <main className="page" id="main">
      {back !== undefined && (
        <Link to={back.to} className="small" onFollow={() => goBackTo(back.to)}>
          <span aria-hidden="true">← </span>
          {back.title}
        </Link>
      )}
      <header className="page-head row apart gap-3">
        <h1 ref={headingRef} tabIndex={-1}>
          {heading}
        </h1>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      {children}
    </main>
  )
}

/** The first page of a visit leaves the focus where the browser begins. */
let isFirst = true
