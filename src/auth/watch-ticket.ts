import { drawSecret } from './api-key.ts'

/** Watch tickets: `wt_` and 40 base62 characters, shown once, stored as a hash, valid for one call within a minute. */

const PREFIX = 'wt_'
const TICKET_PATTERN = /^wt_[0-9A-Za-z]{40}$/

/** How long a ticket is valid, in milliseconds. */
export const TICKET_LIFETIME_MS = 60_000

export function createWatchTicket(): string {
  return drawSecret(PREFIX)
}

/** Whether a text has the form of a ticket. */
export function isWatchTicket(text: string): boolean {
  return TICKET_PATTERN.test(text)
}
