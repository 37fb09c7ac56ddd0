/** What `pay` keeps of payments that were sent and have not ended: an entry of `localStorage` for each request and wallet. */
export function findSender(paymentReference: string, names: readonly string[] = storedNames()): string | undefined {
  const start = `waybill:pay:${paymentReference.toLowerCase().replace(/^0x/, '')}:`
  return names.find((name) => name.startsWith(start))?.slice(start.length)
}

function storedNames(): readonly string[] {
  try {
    return Object.keys(localStorage)
  } catch {
    // The browser denies the page its storage.
    return []
  }
}
