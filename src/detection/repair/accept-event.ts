import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { Hex } from '../../domain/hex.ts'
import { insertAuditEntry } from '../../store/audit-repository.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import { eventKeyOf, type Findings, type UnmatchedEvent } from '../match/detected.ts'
import { type AcceptedAs, acceptableReasons } from '../match/match-event.ts'
import { UNHURRIED } from '../read/patience.ts'
import {
  type Acceptance,
  type AccountEvent,
  deleteAcceptance,
  findAccepted,
  storeAcceptance,
} from '../sql/account-events-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { isCounted } from '../sql/topics-repository.ts'
import { findUnmatched } from '../sql/unmatched-repository.ts'
import type { Correction } from '../write/payment-writer.ts'
import { type ReadAgain, readAgain } from './correct-requests.ts'

/** An operator's decision on an event of an account. */
interface EventDecision {
  readonly account: Account
  readonly txHash: Hex
  readonly eventIndex: number
  /** `user@host`. */
  readonly actor: string
  readonly at: Date
}

/** The event cannot be accepted, or its acceptance not withdrawn; nothing was changed. */
class NotAcceptableError extends Error {
  override readonly name = 'NotAcceptableError'
}

/**
 * Accepts an unmatched event as a payment or a refund. Reads the transaction again, and stores the acceptance, its entry in the audit log and what it
 * changes together. The acceptance also applies when the transaction is read again later, in the same or another block.
 *
 * @throws NotAcceptableError for an event that is not unmatched, or whose reason cannot be overruled; RpcError
 */
export async function acceptEvent(
  knex: Knex,
  chain: OpenChain,
  decision: EventDecision & { readonly as: AcceptedAs; readonly note: string },
  signal?: AbortSignal,
): Promise<void> {
  const { as, note, actor, at } = decision
  const of = eventOf(chain, decision)
  const stored = await findUnmatched(knex, of)
  if (stored === undefined) throw await explainMatched(knex, of)
  await refuseReason(chain, of, stored, as)
  const acceptance = { as, topic: stored.topic, event: stored.event }
  const read = await readOne(chain, of, stored.topic, acceptance, signal)
  const counted = read.findings.accounts.get(of.accountId)
  const found = as === 'PAYMENT' ? counted?.payments : counted?.refunds
  if (found?.length !== 1) {
    const reason = read.findings.unmatched[0]?.reason ?? 'its transaction is not on the chain, or could not be read'
    throw new NotAcceptableError(`the event ${nameOf(of)} would not count even if it were accepted: ${reason}`)
  }
  await correctOne(chain, of, read, async (trx) => {
    await storeAcceptance(trx, of, { ...acceptance, acceptedBy: actor, acceptedAt: at, note })
    await audit(trx, 'ACCEPT_EVENT', decision, { ...detailsOf(chain, of), as, was: stored.reason, reason: note })
  })
}

/**
 * Withdraws an acceptance: the rules alone decide on the event again.
 *
 * @throws NotAcceptableError for an event that is not accepted; RpcError
 */
export async function unacceptEvent(
  knex: Knex,
  chain: OpenChain,
  decision: EventDecision & { readonly note: string },
  signal?: AbortSignal,
): Promise<void> {
  const of = eventOf(chain, decision)
  const acceptance = await acceptanceOf(knex, of)
  if (acceptance === undefined) throw new NotAcceptableError(`the account has accepted no event ${nameOf(of)}`)
  const read = await readOne(chain, of, acceptance.topic, undefined, signal)
  await correctOne(chain, of, read, async (trx) => {
    await deleteAcceptance(trx, of)
    const details = { ...detailsOf(chain, of), as: acceptance.as, reason: decision.note }
    await audit(trx, 'UNACCEPT_EVENT', decision, details)
  })
}

async function acceptanceOf(knex: Knex, of: AccountEvent) {
  const accepted = await findAccepted(knex, of.accountId, { chainId: of.chainId, txHashes: [of.txHash] })
  return accepted.get(eventKeyOf(of))
}

async function explainMatched(knex: Knex, of: AccountEvent): Promise<NotAcceptableError> {
  const acceptance = await acceptanceOf(knex, of)
  if (acceptance === undefined) return new NotAcceptableError(`the account has no unmatched event ${nameOf(of)}`)
  return new NotAcceptableError(`the event ${nameOf(of)} is accepted already, as a ${acceptance.as.toLowerCase()}`)
}

const nameOf = ({ txHash, eventIndex }: AccountEvent) => `${eventIndex} of transaction ${txHash}`

function eventOf({ tools }: OpenChain, { account, txHash, eventIndex }: EventDecision): AccountEvent {
  return { accountId: account.id, chainId: tools.chain.chainId, txHash, eventIndex }
}

function detailsOf({ tools }: OpenChain, { txHash, eventIndex }: AccountEvent) {
  return { chain: tools.chain.name, txHash, eventIndex }
}

async function refuseReason(
  { tools }: OpenChain,
  of: AccountEvent,
  { reason, topic }: UnmatchedEvent,
  as: AcceptedAs,
): Promise<void> {
  const acceptable = acceptableReasons[as]
  const word = as.toLowerCase()
  if (!acceptable.includes(reason)) {
    throw new NotAcceptableError(
      `the event ${nameOf(of)} is unmatched by ${reason}, which cannot be accepted as a ${word}; ${acceptable.join(' and ')} can`,
    )
  }
  if (reason !== 'WRONG_PAYEE') return
  const requests = await tools.repository.requestsOfTopics(of.accountId, [topic])
  if (requests.some((request) => request.topic === topic)) return
  throw new NotAcceptableError(
    `the event ${nameOf(of)} is under the reference of the refund address, but paid another address; that cannot be accepted`,
  )
}

/** Reads one event again as if it had the acceptance, or none. */
async function readOne(
  chain: OpenChain,
  { accountId, txHash, eventIndex }: AccountEvent,
  topic: Hex,
  acceptance: Acceptance | undefined,
  signal: AbortSignal | undefined,
): Promise<ReadAgain> {
  const repository = withAcceptance(chain.tools.repository, eventKeyOf({ txHash, eventIndex }), acceptance)
  const asked = { accountId, topics: new Set([topic]), txHashes: [txHash], patience: UNHURRIED }
  const read = await readAgain({ ...chain, tools: { ...chain.tools, repository } }, asked, signal)
  return { ...read, findings: onlyEvent(read.findings, eventIndex) }
}

/** The repository as it will be once the acceptance of an event is stored, or deleted. */
function withAcceptance(
  repository: DetectionRepository,
  key: string,
  acceptance: Acceptance | undefined,
): DetectionRepository {
  return {
    ...repository,
    async acceptedOf(accountId, transactions) {
      const accepted = await repository.acceptedOf(accountId, transactions)
      if (acceptance === undefined) accepted.delete(key)
      else accepted.set(key, acceptance)
      return accepted
    },
  }
}

function onlyEvent(findings: Findings, eventIndex: number): Findings {
  const { accounts, unmatched } = findings
  const isOfIndex = (event: { readonly eventIndex: number }) => event.eventIndex === eventIndex
  const own = [...accounts].map(
    ([id, { payments, refunds }]) =>
      [id, { payments: payments.filter(isOfIndex), refunds: refunds.filter(isOfIndex) }] as const,
  )
  // Without a directory, events of the same topic that were not matched for the account yet stay stored as they are.
  return { ...findings, accounts: new Map(own), unmatched: unmatched.filter(isOfIndex), directory: new Map() }
}

async function correctOne(
  { writer, tools }: OpenChain,
  of: AccountEvent,
  { findings, blockOf }: ReadAgain,
  store: (trx: Knex.Transaction) => Promise<void>,
): Promise<void> {
  const beside: Correction['beside'] = async (trx, { canonical }) => {
    if (blockOf.size > 0 && !canonical.has(of.txHash)) {
      throw new NotAcceptableError(`the block of transaction ${of.txHash} was not read yet; try again in a moment`)
    }
    // If the acceptance were deleted, the event would stay counted, and no later command could correct that.
    if (blockOf.size === 0 && (await isCounted(trx, of))) {
      throw new NotAcceptableError(
        `the transaction ${of.txHash} could not be read, so what it counts for cannot be corrected; try again with a node that has it`,
      )
    }
    await store(trx)
  }
  const corrected = await writer.correct({ accountId: of.accountId, findings, blockOf, beside })
  if (corrected === undefined) throw new NotAcceptableError(`${tools.chain.name} was never followed`)
}

function audit(
  trx: Knex,
  action: 'ACCEPT_EVENT' | 'UNACCEPT_EVENT',
  { account, actor, at }: EventDecision,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  return insertAuditEntry(trx, { at, actor, action, account: account.name, details })
}
