/** How long something takes: `20 sec`, `5 min`, `2 hr`; seconds below two minutes, and then the largest unit that is not yet two of the next. */
export function formatSpan(seconds: number, locale?: string, unitDisplay: 'short' | 'long' = 'short'): string {
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? (['second', 1] as const)
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay, maximumFractionDigits: 0 }).format(
    Math.round(seconds / size),
  )
}

export const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const
