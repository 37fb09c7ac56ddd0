/** Addresses, hashes and references, shortened in the middle: `0x3C44…93BC`. What is short enough stays whole. */
export function shortAddress(value: string): string {
  return value.length <= 13 ? value : `${value.slice(0, 6)}…${value.slice(-4)}`
}
