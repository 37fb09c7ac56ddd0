import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import { navigate, ROOT } from './location.ts'

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  /** A place of the console, with its query. */
  readonly to: string
}

/** A link to a place of the console. It opens in a tab of its own like any link, and without loading the page again otherwise. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    event.preventDefault()
    navigate(to)
  }
  return <a {...rest} href={ROOT + to} onClick={follow} />
}

/** A link in the form of a button. @param props.kind - what sets it apart from others: `main`, `plain` */
export function LinkButton({ text, kind = '', to }: { text: string; kind?: string; to: string }) {
  return (
    <Link className={`button ${kind}`} to={to}>
      {text}
    </Link>
  )
}
