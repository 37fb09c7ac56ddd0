import { type RefObject, useEffect, useState } from 'react'

/**
 * Whether a person is busy with what stands in an area: text in it is selected, its rows have the focus, or it is scrolled away from its top.
 * New rows would then move what he reads.
 */
export function useHold(area: RefObject<HTMLElement | null>): boolean {
  const [isHeld, setHeld] = useState(false)
  useEffect(() => {
    const read = () => {
      const element = area.current
      setHeld(element !== null && (hasSelection(element) || hasFocusedRow(element) || isScrolledPast(element)))
    }
    const left = new AbortController()
    for (const event of ['selectionchange', 'focusin', 'focusout', 'scroll'])
      document.addEventListener(event, read, { passive: true, signal: left.signal })
    return () => left.abort()
  }, [area])
  return isHeld
}

function hasSelection(element: HTMLElement): boolean {
  const selection = getSelection()
  return (
    selection !== null &&
    !selection.isCollapsed &&
    selection.anchorNode !== null &&
    element.contains(selection.anchorNode)
  )
}

function hasFocusedRow(element: HTMLElement): boolean {
  const focused = document.activeElement
  return focused?.closest('tbody') !== null && element.contains(focused)
}

/** Its first rows are above what can be seen. */
function isScrolledPast(element: HTMLElement): boolean {
  return element.getBoundingClientRect().top < 0
}
