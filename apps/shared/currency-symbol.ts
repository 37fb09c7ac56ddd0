/** `USDC-BASE` → `USDC`; what has no network stays as it is. */
export const symbolOf = (currency: string) => currency.replace(/-[^-]*$/, '')
