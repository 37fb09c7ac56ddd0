import type { Knex } from 'knex'
import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import { insertAuditEntry } from '../../store/audit-repository.ts'
import { createEventReader } from '../follow/read-events.ts'
import { createFinalBlocksReader } from '../follow/read-final-blocks.ts'
import type { Findings } from '../match/detected.ts'
import type { OpenChain } from '../open-chain.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { readBlocks } from '../sql/chain-blocks-repository.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import { findStoredEvents, type StoredEvent } from '../sql/reread-repository.ts'
import { type CorrectedRange, correctRange, NotFinalError } from '../write/correct-range.ts'
import { describeChanges, type RecheckChange } from './describe-changes.ts'
import { recheckRequestIds } from './recheck.ts'
import type { ReplayQueue } from './replay-queue.ts'

/** Which blocks are read again, and how. */
export interface RereadTerms {
  /** Both ends included. */
  readonly from: number
  readonly to: number
  /** Whether only to tell what would change. */
  readonly isTrial: boolean
  /** Who asked for it, for the audit log: `user@host`, or `service`. */
  readonly actor: string
  readonly signal?: AbortSignal | undefined
}

/** A correction of what is stored of one account, or of none. */
export interface RereadChange extends Omit<RecheckChange, 'what'> {
  /** 0: no account knows the event. */
  readonly accountId: number
  /** Its name; absent where there is none. */
  readonly account?: string | undefined
  readonly what: RecheckChange['what'] | 'event'
}

/** Blocks that are done. */
export interface RereadStep {
  /** The last block that was read; `from` of another run continues after it. */
  readonly block: number
  readonly changes: readonly RereadChange[]
  /** Transactions whose trace failed, so that what is stored of them was left as it is. */
  readonly unread: readonly Hex[]
}

/** The parts of a chain whose blocks are read again. */
export interface RereadChain {
  readonly knex: Knex
  /** Its nodes are those that are asked. */
  readonly chain: OpenChain
  readonly replays: Pick<ReplayQueue, 'recheck'>
  readonly logger: Logger
  readonly clock: () => Date
}

/** The blocks cannot be read again, or not from this node. What is stored of them was not changed. */
class NotRereadableError extends Error {
  override readonly name = 'NotRereadableError'
}

/** Reads in a row without progress, after which it gives up. */
const MAX_FRUITLESS_READS = 50

/**
 * Reads final blocks of a chain again, and makes what is stored of them equal to it: adds what is missing, corrects what differs, removes what the
 * chain does not have. Then matches the refunds of the requests that changed again. Imported payments stay. Needs no lease: each step is one transaction
 * under the lock that every writer of the chain takes. A second run changes nothing.
 *
 * @throws NotRereadableError; RpcError where the nodes do not answer; the steps before are written
 */
export async function* rereadRange(rereading: RereadChain, terms: RereadTerms): AsyncGenerator<RereadStep> {
  const { knex, chain } = rereading
  const { chainId } = chain.tools.chain
  await refuseOtherChain(rereading, terms)
  const stored = await findStoredEvents(knex, { chainId, from: terms.from, to: terms.to })
  const changed = new Map<number, Set<string>>()
  for await (const step of readBlocksAgain(rereading, terms, stored)) {
    for (const { accountId, requestId } of step.changes) {
      if (requestId !== '') changed.set(accountId, (changed.get(accountId) ?? new Set()).add(requestId))
    }
    yield step
  }
  if (!terms.isTrial) yield* recheckChanged(rereading, terms, changed)
}

/** @throws NotRereadableError where the nodes are of another chain, or the blocks are not all final and read */
async function refuseOtherChain({ knex, chain }: RereadChain, { to, signal }: RereadTerms): Promise<void> {
  const { name, chainId } = chain.tools.chain
  const stored = await findChain(knex, chainId)
  if (stored === undefined) throw new NotRereadableError(`nothing of ${name} is stored yet`)
  const { alarm, finalBlock, scannedBlock } = stored
  if (alarm !== undefined) throw new NotRereadableError(`${name} is stopped (${alarm}): run "chains restart" first`)
  const last = Math.min(finalBlock, scannedBlock)
  if (to > last) {
    throw new NotRereadableError(
      `block ${to} of ${name} is not final, or not read yet: the last block to choose is ${last}`,
    )
  }
  const [lowest] = await readBlocks(knex, chainId)
  const known = [{ number: 0, hash: stored.genesisHash }, ...(lowest === undefined ? [] : [lowest])]
  const headers = await chain.reader.headers(
    known.map(({ number }) => number),
    signal,
  )
  for (const [index, { number, hash }] of known.entries()) {
    const header = headers[index]
    if (header === undefined)
      throw new NotRereadableError(`the node does not have block ${number} of ${name}: choose another node`)
    if (header.hash === hash) continue
    throw new NotRereadableError(
      `the node has another block ${number} of ${name} than was read before: choose another node`,
    )
  }
}

async function* readBlocksAgain(
  rereading: RereadChain,
  terms: RereadTerms,
  stored: readonly StoredEvent[],
): AsyncGenerator<RereadStep> {
  const { chain, clock } = rereading
  const { reader } = chain
  let logs: readonly RpcLog[] = []
  let doubted: readonly Hex[] = []
  const inner = createEventReader({ ...rereading, ...chain, areReread: true, doubted: () => doubted })
  const events: typeof inner = {
    read(given, signal) {
      const last = given.blocks.at(-1)?.number ?? terms.to
      ;({ logs } = given)
      doubted = [...new Set(storedIn(stored, from, last).map(({ txHash }) => txHash))]
      return inner.read(given, signal)
    },
  }
  const blocks = createFinalBlocksReader({ reader, events, clock })
  let from = terms.from
  let fruitless = 0
  while (from <= terms.to) {
    const steps: RereadStep[] = []
    const write = async ({ number }: BlockHeader, findings: Findings) => {
      steps.push(await writeStep(rereading, terms, { from, to: number, findings, logs, stored }))
    }
    const outcome = await blocks.read({ from, until: terms.to }, write, terms.signal)
    if (outcome.kind === 'LACKING') throw new NotRereadableError(`${outcome.reason}: choose another node`)
    fruitless = outcome.kind === 'AGAIN' ? fruitless + 1 : 0
    if (outcome.kind === 'AGAIN' && fruitless > MAX_FRUITLESS_READS) throw new NotRereadableError(outcome.reason)
    for (const step of steps) {
      from = step.block + 1
      yield step
    }
  }
}

function storedIn(stored: readonly StoredEvent[], from: number, to: number): StoredEvent[] {
  return stored.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to)
}

interface BlocksAgain {
  readonly from: number
  readonly to: number
  readonly findings: Findings
  readonly logs: readonly RpcLog[]
  readonly stored: readonly StoredEvent[]
}

async function writeStep(
  { knex, chain, replays, clock }: RereadChain,
  { isTrial, actor, signal }: RereadTerms,
  { from, to, findings, logs, stored }: BlocksAgain,
): Promise<RereadStep> {
  const { tools } = chain
  const { name: network, chainId } = tools.chain
  const topics = new Set(logs.flatMap((log) => decodeFeeProxyLog(log)?.topic ?? []))
  let changes: readonly RereadChange[] = []
  const correction = {
    from,
    to,
    findings,
    topics,
    stored: storedIn(stored, from, to),
    isTrial,
    beside: async (trx: Knex.Transaction, corrected: CorrectedRange) => {
      const ids = [...corrected.accounts.keys(), ...corrected.unmatchedAdded.map(({ accountId }) => accountId)]
      const names = await tools.repository.accountNames([...new Set(ids)])
      changes = describeRange(corrected, findings, { chain: tools.chain, names })
      for (const [account, some] of Map.groupBy(changes, (change) => change.account)) {
        if (account === undefined) continue
        const details = { chain: network, from, to, changes: some.length, first: some.slice(0, 20).map(lineOf) }
        await insertAuditEntry(trx, { at: clock(), actor, action: 'REREAD_RANGE', account, details })
      }
    },
  }
  await correctRange({ knex, chain: { chainId, network }, clock }, correction, signal).catch(explainNotFinal)
  if (!isTrial) await replays.recheck(findings)
  return { block: to, changes, unread: [...findings.untraced] }
}

function explainNotFinal(error: unknown): never {
  throw error instanceof NotFinalError ? new NotRereadableError(error.message) : error
}

function lineOf({ what, id, change }: RereadChange): string {
  return `${what} ${id} ${change}`
}

function describeRange(
  { accounts, unmatchedAdded, unmatchedRemoved }: CorrectedRange,
  findings: Findings,
  { chain, names }: { readonly chain: OpenChain['tools']['chain']; readonly names: ReadonlyMap<number, string> },
): RereadChange[] {
  const events = [
    ...unmatchedAdded.map((event) => ({ ...event, change: `unmatched: ${event.reason}` })),
    ...unmatchedRemoved.map((event) => ({ ...event, change: `no longer unmatched: ${event.reason}` })),
  ]
  return [
    ...[...accounts].flatMap(([accountId, changed]) =>
      describeChanges(changed, findings, chain).map((change) => ({
        ...change,
        accountId,
        account: names.get(accountId),
      })),
    ),
    ...events.map(({ accountId, txHash, eventIndex, change }) => ({
      accountId,
      account: names.get(accountId),
      requestId: '',
      what: 'event' as const,
      id: `${txHash}:${eventIndex}`,
      change,
    })),
  ]
}

/** What counts as a refund depends on the payments before it, and those may stand in other blocks. */
async function* recheckChanged(
  { knex, chain }: RereadChain,
  { to, signal }: RereadTerms,
  changed: ReadonlyMap<number, ReadonlySet<string>>,
): AsyncGenerator<RereadStep> {
  const names = await chain.tools.repository.accountNames([...changed.keys()])
  for (const [accountId, requestIds] of changed) {
    const account = names.get(accountId)
    for await (const step of recheckRequestIds(knex, chain, { accountId, requestIds: [...requestIds], signal })) {
      yield { block: to, changes: step.changes.map((change) => ({ ...change, accountId, account })), unread: [] }
    }
  }
}
