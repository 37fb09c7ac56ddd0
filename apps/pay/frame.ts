/** What the page says to the page that frames it. The policy lets only pages of the key's origins frame it, and messages go to that origin. */

type Message =
  | { readonly type: 'waybill:status'; readonly paymentReference: string; readonly status: string }
  /** In pixels: a frame of this height shows all of the page. */
  | { readonly type: 'waybill:height'; readonly height: number }

export function sendToFrame(message: Message): void {
  if (window.parent === window) return
  const origin = originAround({ ancestors: location.ancestorOrigins, referrer: document.referrer })
  if (origin !== undefined) window.parent.postMessage(message, origin)
}

/** Says how high the page is, and again when that changes. */
export function showHeight(root: HTMLElement): void {
  new ResizeObserver(() => {
    sendToFrame({ type: 'waybill:height', height: Math.ceil(root.getBoundingClientRect().height) })
  }).observe(root)
}

interface Around {
  /** Not every browser has it. */
  readonly ancestors: ArrayLike<string> | undefined
  /** For a frame: the page around it, unless that page keeps it to itself. */
  readonly referrer: string
}

/** The origin of the page around this one; undefined where no browser says it. */
export function originAround({ ancestors, referrer }: Around): string | undefined {
  const around = ancestors?.[0] ?? (URL.canParse(referrer) ? new URL(referrer).origin : '')
  return /^https?:/.test(around) ? around : undefined
}
