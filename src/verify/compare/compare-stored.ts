import type { Account } from '../../domain/account.ts'
import { caip2Of } from '../../domain/chain.ts'
import { listStoredAccounts } from '../../store/proof/check-account.ts'
import { checkStatistics } from '../../store/proof/check-statistics.ts'
import type { Section } from '../read-sections.ts'
import { acceptedOf, findAccounts, requestsOfIds, requestsOfTopics, walletsOf } from '../sql/stored-requests.ts'
import { historyBlocks, touchedBetween } from '../sql/stored-rows.ts'
import type { Unproven, VerifyDifference } from '../verify-report.ts'
import { type Compared, compareRequests } from './compare-requests.ts'
import { type CompareTerms, inSnapshot, isWithin, keyOfFact } from './compare-terms.ts'
import { compareUnmatched } from './compare-unmatched.ts'
import type { ComparedAccount, Comparison } from './compared-page.ts'
import { addTotals, NO_TOTALS, type Totals } from './totals.ts'

/** The result of comparing a section. */
export interface Outcome {
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** In the section alone. */
  readonly totals: Totals
  readonly unmatched: number
  /** The requests that were compared over their whole history, by account. */
  readonly touched: ReadonlyMap<Account, ReadonlySet<string>>
}

const REQUESTS_A_PAGE = 200

/** Compares a section of the chain with what is stored. Requests are read in pages, each in a snapshot of its own. */
export async function compareStored(terms: CompareTerms, section: Section): Promise<Outcome> {
  const { knex } = terms
  const touched = await findTouched(terms, section)
  const history = await readHistory(terms, section, touched)
  const facts = [...section.facts, ...history.facts]
  const comparison: Comparison = {
    chain: terms.chain,
    tokens: terms.tokens,
    factsOf: Map.groupBy(facts, ({ event }) => event.topic),
    factAt: new Map(facts.map((fact) => [keyOfFact(fact), fact])),
    isInRange: (number) => isWithin(section.span, number),
    isRead: (number) => !section.uncertain.has(number) && (isWithin(section.span, number) || history.read.has(number)),
  }
  const names = new Map((await listStoredAccounts(knex)).map(({ id, name }) => [id, name]))
  const accounts = new Map([...touched].map(([id, ids]) => [{ id, name: names.get(id) ?? `#${id}` }, ids]))
  const pages: Compared[] = []
  for (const [account, requestIds] of accounts) {
    pages.push(...(await comparePages(terms, comparison, account, [...requestIds].toSorted())))
  }
  const expected = new Map(pages.flatMap(({ unmatched }) => [...unmatched]))
  const unmatched = await compareUnmatched(terms, section, { expected, comparison, names })
  return {
    differences: [...pages.flatMap(({ differences }) => differences), ...unmatched.differences],
    unproven: pages.flatMap(({ unproven }) => unproven),
    totals: pages.reduce((sum, { totals }) => addTotals(sum, totals), NO_TOTALS),
    unmatched: unmatched.count,
    touched: accounts,
  }
}

/** Finds the requests to which events or stored rows of the section belong, by account. */
async function findTouched(terms: CompareTerms, read: Section): Promise<Map<number, Set<string>>> {
  const { knex, account, chain } = terms
  const touched = new Map<number, Set<string>>()
  const touch = (accountId: number, requestId: string) => {
    if (account !== undefined && account.id !== accountId) return
    touched.set(accountId, (touched.get(accountId) ?? new Set<string>()).add(requestId))
  }
  const topics = [...new Set(read.facts.map(({ event }) => event.topic))]
  const byAccount = Map.groupBy(
    [...(await findAccounts(knex, topics))].flatMap(([topic, ids]) => ids.map((id) => ({ topic, id }))),
    ({ id }) => id,
  )
  for (const [id, known] of byAccount) {
    const requests = await requestsOfTopics(
      knex,
      id,
      known.map(({ topic }) => topic),
    )
    for (const { requestId } of requests) touch(id, requestId)
  }
  const accounts = account === undefined ? (await listStoredAccounts(knex)).map(({ id }) => id) : [account.id]
  const blocks = { ...read.span, chainId: caip2Of(chain.chainId), fromTime: read.fromTime, toTime: read.toTime }
  for (const { accountId, requestId } of await touchedBetween(knex, accounts, blocks)) touch(accountId, requestId)
  return touched
}

/** Reads the blocks outside the section in which rows of these requests are stored. Adds events of earlier sections that differ from what is stored. */
async function readHistory(terms: CompareTerms, section: Section, touched: ReadonlyMap<number, ReadonlySet<string>>) {
  const { knex, chain } = terms
  const numbers = new Set<number>()
  for (const [accountId, ids] of touched) {
    const requestIds = [...ids]
    const requests = await requestsOfIds(knex, accountId, requestIds)
    const topics = requests.flatMap(({ topic, refundTopic }) => (refundTopic ? [topic, refundTopic] : [topic]))
    const which = { chainId: caip2Of(chain.chainId), requestIds, topics }
    for (const number of await historyBlocks(knex, accountId, which)) numbers.add(number)
  }
  const missing = [...numbers]
    .filter((number) => number <= terms.pinned && !isWithin(section.span, number))
    .toSorted((a, b) => a - b)
  const { facts, uncertain } = await terms.readMore(missing)
  const known = new Set(facts.map(keyOfFact))
  const differed = terms.differed.filter(
    (fact) => !known.has(keyOfFact(fact)) && !isWithin(section.span, fact.blockNumber),
  )
  return {
    facts: [...facts, ...differed],
    read: new Set(missing.filter((number) => !uncertain.includes(number))),
  }
}

async function comparePages(
  terms: CompareTerms,
  comparison: Comparison,
  { id, name }: Account,
  requestIds: readonly string[],
): Promise<Compared[]> {
  const chainId = caip2Of(terms.chain.chainId)
  const pages: Compared[] = []
  for (let from = 0; from < requestIds.length; from += REQUESTS_A_PAGE) {
    const some = requestIds.slice(from, from + REQUESTS_A_PAGE)
    const page = await inSnapshot(terms, async (trx) => {
      const [wallets, accepted] = [await walletsOf(trx, id), await acceptedOf(trx, id, chainId)]
      const account: ComparedAccount = { id, name, wallets, accepted }
      return compareRequests(trx, comparison, account, some)
    })
    pages.push(page)
  }
  return pages
}

/** Compares the statistics of an account with its stored payments. */
export async function compareStatistics(
  terms: Pick<CompareTerms, 'knex' | 'signal'>,
  { id, name }: Account,
): Promise<VerifyDifference[]> {
  const found = await inSnapshot(terms, (trx) => checkStatistics(trx, id))
  return found.map(({ where, stored, expected }) => ({
    kind: 'STATISTICS',
    account: name,
    field: where,
    stored,
    chain: expected,
  }))
}
