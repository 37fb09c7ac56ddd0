/**
 * Tells the page that frames this one. Only pages of the key's origins may frame it, and the message goes to the one that does: the referrer of
 * a frame is the page around it.
 */
export function tellFrame(status: { readonly paymentReference: string; readonly status: string }): void {
  if (window.parent === window || document.referrer === '') return
  window.parent.postMessage({ type: 'waybill:status', ...status }, new URL(document.referrer).origin)
}
