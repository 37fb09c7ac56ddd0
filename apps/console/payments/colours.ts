/** Colours of the chart: a network, currency or status has the same one whatever is filtered, and however it is grouped. */
import { OTHER, type Split } from './sums.ts'

/** Those that keep their colour also where others are served; colours that stand beside each other here are far apart. */
const NETWORKS = ['ETHEREUM', 'OPTIMISM', 'ARBITRUM', 'POLYGON', 'BSC', 'BASE', 'TRON', 'GNOSIS', 'SEPOLIA']

const STATUSES: Readonly<Record<string, string>> = {
  PENDING: 'var(--accent)',
  PARTIAL: 'var(--warn)',
  CONFIRMED: 'var(--good)',
  REFUNDED: 'var(--edge)',
  FAILED: 'var(--bad)',
}

const FIRST_HUE = 250
/** The golden angle: however many there are, each is far from those before. */
const HUE_STEP = 137.5

/**
 * @param known - the names of the account's payments without any filter, in an order that stays
 * @returns the colour of a name, as CSS
 */
export function coloursOf(split: Split, known: readonly string[]): (name: string) => string {
  const order = split === 'network' ? [...new Set([...NETWORKS, ...known])] : known
  return (name) => {
    const at = order.indexOf(name)
    if (split === 'status' && name in STATUSES) return STATUSES[name]!
    if (name === OTHER || at < 0) return 'var(--series-6)'
    const hue = (FIRST_HUE + at * HUE_STEP) % 360
    return `light-dark(oklch(0.58 0.13 ${hue}), oklch(0.74 0.12 ${hue}))`
  }
}
