/** Addresses, hashes and references, shortened in the middle: `0x3C44…93BC`. What is short enough stays whole. */
export function shortAddress(value: string, head = 6, tail = 4): string {
  return value.length <= head + tail + 3 ? value : `${value.slice(0, head)}…${value.slice(-tail)}`
}
