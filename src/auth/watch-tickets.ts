import { waybillError } from '../errors/waybill-error.ts'
import type { Caller, ReportLimit } from './caller.ts'
import type { FindKeyInForce } from './find-key-in-force.ts'
import type { CountAddress } from './limit-addresses.ts'
import type { CountCall } from './limit-calls.ts'
import { drawSecret, hashApiKey, type Scope } from './rules/api-key.ts'
import type { WatchTicketsRepository } from './sql/watch-tickets-repository.ts'

/** Tickets: `wt_` and 40 base62 characters, shown once, stored as a hash, valid for one call within a minute. */
const PREFIX = 'wt_'
const TICKET_PATTERN = /^wt_[0-9A-Za-z]{40}$/
const TICKET_LIFETIME_MS = 60_000

interface TicketUse {
  readonly scope: Scope
  readonly account: string | null
  readonly address: () => string
  readonly report: ReportLimit
}

interface WatchTicketsOptions {
  readonly repository: WatchTicketsRepository
  readonly findKeyInForce: FindKeyInForce
  readonly countCall: CountCall
  readonly countAddress: CountAddress
  readonly now: () => Date
}

export type WatchTickets = ReturnType<typeof createWatchTickets>

/** Watch tickets: they replace the key for callers that cannot send headers, such as EventSource in a browser. */
export function createWatchTickets(options: WatchTicketsOptions) {
  const { repository, findKeyInForce, countCall, countAddress, now } = options

  return {
    /** Issues a ticket that acts for a caller. Its text is returned only here. */
    async issue({ account, keyId }: Caller) {
      const ticket = drawSecret(PREFIX)
      const expiresAt = new Date(now().getTime() + TICKET_LIFETIME_MS)
      await repository.insert({ ticketHash: hashApiKey(ticket), keyId, account, expiresAt }, now())
      return { ticket, expiresAt }
    },
    /**
     * Finds the caller of a ticket and uses the ticket up. The call counts against the key that the ticket was issued to or, when the
     * ticket is not valid, against the address.
     *
     * @param use - `account`: the name in `x-account`, which must name the ticket's account
     * @throws WaybillError RATE_LIMITED, INVALID_TICKET, MISSING_SCOPE, ACCOUNT_NOT_ALLOWED
     */
    async redeem(ticket: string, use: TicketUse): Promise<Caller> {
      const { scope, account: named, address, report } = use
      const takeBack = countAddress(address(), report)
      const taken = TICKET_PATTERN.test(ticket) ? await repository.take(hashApiKey(ticket), now()) : undefined
      const key = taken && (await findKeyInForce(taken.keyId))
      if (taken === undefined || key === undefined) throw waybillError('INVALID_TICKET', {})
      takeBack()
      await countCall(key.id, key.callsPerMinute, report)
      if (!key.scopes.includes(scope)) throw waybillError('MISSING_SCOPE', { scope })
      if (named !== null && named !== taken.account.name) throw waybillError('ACCOUNT_NOT_ALLOWED', {})
      return taken
    },
  }
}
