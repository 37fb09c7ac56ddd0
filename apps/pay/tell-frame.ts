/**
 * Tells the page that frames this one. The policy lets only pages of the key's origins frame it, and the message goes to the origin of the page
 * that does.
 */
export function tellFrame(status: { readonly paymentReference: string; readonly status: string }): void {
  if (window.parent === window) return
  const origin = originAround({ ancestors: location.ancestorOrigins, referrer: document.referrer })
  if (origin !== undefined) window.parent.postMessage({ type: 'waybill:status', ...status }, origin)
}

interface Around {
  /** Not every browser has it. */
  readonly ancestors: ArrayLike<string> | undefined
  /** For a frame: the page around it, unless that page keeps it to itself. */
  readonly referrer: string
}

/** The origin of the page around this one; undefined where no browser tells it. */
export function originAround({ ancestors, referrer }: Around): string | undefined {
  const around = ancestors?.[0] ?? (URL.canParse(referrer) ? new URL(referrer).origin : '')
  return /^https?:/.test(around) ? around : undefined
}
