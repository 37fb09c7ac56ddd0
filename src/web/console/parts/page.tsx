import { type ReactNode, useEffect, useRef } from 'react'

/** The frame of one page: its heading gets the focus when the page is opened, so that a screen reader says where one is. */
export function Page({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Waybill`
  }, [title])
  useEffect(() => {
    if (isFirst) isFirst = false
    else heading.current?.focus()
  }, [])
  return (
    <main className="page" id="main">
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </main>
  )
}

/** The first page of a visit leaves the focus where the browser begins. */
let isFirst = true
