import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { Hex } from '../../domain/hex.ts'
import { insertAuditEntry } from '../../store/audit-repository.ts'
import type { Findings } from '../match/detected.ts'
import { type AcceptedAs, acceptableReasons } from '../match/match-event.ts'
import {
  type Acceptance,
  type AcceptedEvent,
  acceptanceKeyOf,
  deleteAcceptance,
  findAccepted,
  storeAcceptance,
} from '../sql/accepted-events-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { Correction } from '../sql/payment-writer.ts'
import { findUnmatched, isCounted, type StoredUnmatched } from '../sql/recheck-repository.ts'
import { type ReadAgain, type ReplayChain, readAgain } from './replay.ts'

/** Which event of an account is decided on, by whom and why. */
export interface EventDecision {
  readonly account: Account
  readonly txHash: Hex
  readonly eventIndex: number
  /** `user@host`. */
  readonly actor: string
  readonly at: Date
}

/** An event cannot be accepted, or not be taken back; nothing was changed. */
class NotAcceptableError extends Error {
  override readonly name = 'NotAcceptableError'
}

/**
 * Accepts an unmatched event as a payment or a refund. The transaction is read again, and the acceptance, its line of the audit log
 * and what it changes are stored together. It holds whenever the transaction is read again, also in another block.
 *
 * @throws NotAcceptableError for an event that is not unmatched, or whose reason cannot be accepted; RpcError
 */
export async function acceptEvent(
  knex: Knex,
  chain: ReplayChain,
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
    throw new NotAcceptableError(`the event ${nameOf(of)} counts for nothing even when it is accepted: ${reason}`)
  }
  await correctOne(chain, of, read, async (trx) => {
    await storeAcceptance(trx, of, { ...acceptance, acceptedBy: actor, acceptedAt: at, note })
    await audit(trx, 'ACCEPT_EVENT', decision, { ...detailsOf(chain, of), as, was: stored.reason, reason: note })
  })
}

/**
 * Takes an acceptance back: the event counts by the rules again.
 *
 * @throws NotAcceptableError for an event that is not accepted; RpcError
 */
export async function unacceptEvent(
  knex: Knex,
  chain: ReplayChain,
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

async function acceptanceOf(knex: Knex, of: AcceptedEvent) {
  const accepted = await findAccepted(knex, of.accountId, { chainId: of.chainId, txHashes: [of.txHash] })
  return accepted.get(acceptanceKeyOf(of.txHash, of.eventIndex))
}

async function explainMatched(knex: Knex, of: AcceptedEvent): Promise<NotAcceptableError> {
  const acceptance = await acceptanceOf(knex, of)
  if (acceptance === undefined) return new NotAcceptableError(`the account has no unmatched event ${nameOf(of)}`)
  return new NotAcceptableError(`the event ${nameOf(of)} is accepted already, as a ${acceptance.as.toLowerCase()}`)
}

const nameOf = ({ txHash, eventIndex }: AcceptedEvent) => `${eventIndex} of transaction ${txHash}`

function eventOf({ tools }: ReplayChain, { account, txHash, eventIndex }: EventDecision): AcceptedEvent {
  return { accountId: account.id, chainId: tools.chain.chainId, txHash, eventIndex }
}

function detailsOf({ tools }: ReplayChain, { txHash, eventIndex }: AcceptedEvent) {
  return { chain: tools.chain.name, txHash, eventIndex }
}

async function refuseReason(
  { tools }: ReplayChain,
  of: AcceptedEvent,
  { reason, topic }: StoredUnmatched,
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
    `the event ${nameOf(of)} paid somebody else than the refund address under its reference, which cannot be accepted`,
  )
}

/** Finds out what one event means with the acceptance, or without any. */
async function readOne(
  chain: ReplayChain,
  { accountId, txHash, eventIndex }: AcceptedEvent,
  topic: Hex,
  acceptance: Acceptance | undefined,
  signal: AbortSignal | undefined,
): Promise<ReadAgain> {
  const repository = withAcceptance(chain.tools.repository, acceptanceKeyOf(txHash, eventIndex), acceptance)
  const asked = { accountId, topics: new Set([topic]), txHashes: [txHash], areReread: true }
  const read = await readAgain({ ...chain, tools: { ...chain.tools, repository } }, asked, signal)
  return { ...read, findings: onlyEvent(read.findings, eventIndex) }
}

/** The repository as it will be once the acceptance of an event is stored, or is gone. */
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
  const isIt = (event: { readonly eventIndex: number }) => event.eventIndex === eventIndex
  const own = [...accounts].map(
    ([id, { payments, refunds }]) => [id, { payments: payments.filter(isIt), refunds: refunds.filter(isIt) }] as const,
  )
  return { ...findings, accounts: new Map(own), unmatched: unmatched.filter(isIt) }
}

async function correctOne(
  { writer, tools }: ReplayChain,
  of: AcceptedEvent,
  { findings, blockOf }: ReadAgain,
  store: (trx: Knex.Transaction) => Promise<void>,
): Promise<void> {
  const beside: Correction['beside'] = async (trx, standing) => {
    if (blockOf.size > 0 && !standing.has(of.txHash)) {
      throw new NotAcceptableError(`the block of transaction ${of.txHash} was not looked at yet; try again in a moment`)
    }
    // Without its acceptance it would stay counted, and no later command could take it back.
    if (blockOf.size === 0 && (await isCounted(trx, of))) {
      throw new NotAcceptableError(
        `the transaction ${of.txHash} could not be read, so what it counts for cannot be taken back; try again with a node that has it`,
      )
    }
    await store(trx)
  }
  const corrected = await writer.correct({ accountId: of.accountId, findings, blockOf, beside })
  if (corrected === undefined) throw new NotAcceptableError(`${tools.chain.name} was not looked at yet`)
}

function audit(
  trx: Knex,
  action: 'ACCEPT_EVENT' | 'UNACCEPT_EVENT',
  { account, actor, at }: EventDecision,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  return insertAuditEntry(trx, { at, actor, action, account: account.name, details })
}
