import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import { navigate, ROOT } from './location.ts'

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  /** A place of the console, with its query. */
  readonly to: string
  /** Called before a click leads there in this tab. @returns whether it is done with that */
  readonly onFollow?: () => boolean
}

/** A link to a place of the console. It opens in a tab of its own like any link, and without loading the page again otherwise. */
export function Link({ to, onClick, onFollow, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    const { defaultPrevented, button, metaKey, ctrlKey, shiftKey, altKey } = event
    if (defaultPrevented || button !== 0 || metaKey || ctrlKey || shiftKey || altKey) return
    event.preventDefault()
    if (onFollow?.() !== true) navigate(to)
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

/**
 * What makes a whole row of a table a link: the one of class `row-link` in it lies over the row. What has a title, for those who point at it, or
 * can be pressed, lies above the link; a click there that presses nothing and selects no text opens the row too.
 */
export function linkedRow(to: string) {
  const open = (event: MouseEvent<HTMLElement>) => {
    if ((event.target as HTMLElement).closest('a, button') !== null || getSelection()?.isCollapsed === false) return
    if (event.button === 1 || event.ctrlKey || event.metaKey) window.open(ROOT + to, '_blank', 'noopener')
    else if (event.button === 0) navigate(to)
  }
  return { className: 'linked', onClick: open, onAuxClick: open }
}
