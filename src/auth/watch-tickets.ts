import type { Account } from '../domain/account.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { hashApiKey, type Scope } from './api-key.ts'
import type { Caller } from './caller.ts'
import type { FindKeyInForce } from './find-key-in-force.ts'
import type { CountAddress } from './limit-addresses.ts'
import type { CountCall } from './limit-calls.ts'
import type { ReportLimit } from './rate-limit.ts'
import type { WatchTicketsRepository } from './sql/watch-tickets-repository.ts'
import { createWatchTicket, isWatchTicket, TICKET_LIFETIME_MS } from './watch-ticket.ts'

/** A new ticket; its text is returned only here. */
export interface IssuedTicket {
  readonly ticket: string
  readonly expiresAt: Date
}

/** Watch tickets: they replace the key for callers that cannot send headers, such as EventSource in a browser. */
export interface WatchTickets {
  /** Issues a ticket that acts for a caller. */
  issue(caller: Caller): Promise<IssuedTicket>
  /**
   * Finds the caller of a ticket and uses the ticket up. The call counts against the key that the ticket was issued to or, when the
   * ticket is not valid, against the address.
   *
   * @param account - the name in `x-account`, which must name the ticket's account
   * @throws WaybillError RATE_LIMITED, INVALID_TICKET, MISSING_SCOPE, ACCOUNT_NOT_ALLOWED
   */
  redeem(ticket: string, use: TicketUse): Promise<Caller>
}

export interface TicketUse {
  readonly scope: Scope
  readonly account: string | null
  readonly address: () => string
  readonly report: ReportLimit
}

export interface WatchTicketsOptions {
  readonly repository: WatchTicketsRepository
  readonly findKeyInForce: FindKeyInForce
  readonly countCall: CountCall
  readonly countAddress: CountAddress
  readonly now: () => Date
}

export function createWatchTickets(options: WatchTicketsOptions): WatchTickets {
  const { repository, findKeyInForce, countCall, countAddress, now } = options

  async function take(ticket: string): Promise<{ account: Account; keyId: string } | undefined> {
    return isWatchTicket(ticket) ? repository.take(hashApiKey(ticket), now()) : undefined
  }

  return {
    async issue({ account, keyId }) {
      const ticket = createWatchTicket()
      const expiresAt = new Date(now().getTime() + TICKET_LIFETIME_MS)
      await repository.insert({ ticketHash: hashApiKey(ticket), keyId, account, expiresAt }, now())
      return { ticket, expiresAt }
    },
    async redeem(ticket, { scope, account: named, address, report }) {
      const takeBack = countAddress(address(), report)
      const taken = await take(ticket)
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
