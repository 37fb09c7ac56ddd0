/** Names of time zones in the IANA database. */

/** The form of a name. Offsets such as `UTC+3` are excluded, because PostgreSQL reads them with the opposite sign. */
const NAME_FORM = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/

/**
 * Reads a name of a time zone in any case; former names are accepted.
 *
 * @returns the name as this runtime writes it, or undefined
 */
export function parseTimeZone(text: string): string | undefined {
  if (!NAME_FORM.test(text)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** All names, for suggestions. */
export function timeZoneNames(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')]
}
