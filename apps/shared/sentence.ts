/**
 * The service's words as a sentence: with a full stop, and a capital unless they begin with the name of a provider, `demo-bridge`, or of a field,
 * `feeAddress`.
 */
export function sentence(text: string): string {
  const whole = /^[a-z]+(?=[ ,:])/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
  return whole === '' || /[.!?…]$/.test(whole) ? whole : `${whole}.`
}

/** Addresses, hashes and references, shortened in the middle: `0x3C44…93BC`. What is short enough stays whole. */
export function shortAddress(value: string): string {
  return value.length <= 13 ? value : `${value.slice(0, 6)}…${value.slice(-4)}`
}
