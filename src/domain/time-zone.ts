/** Names of time zones, as the IANA database has them. */

/** Offsets and abbreviations of the form that databases read in ways of their own (`UTC+3`) are no names. */
const NAME_FORM = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/

/**
 * Reads a name of the IANA time zone database, in any case, former names included.
 *
 * @returns the name that it is known by here, or undefined
 */
export function parseTimeZone(text: string): string | undefined {
  if (!NAME_FORM.test(text)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** The names that there are, for suggestions. */
export function timeZoneNames(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')]
}
