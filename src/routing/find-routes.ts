import type { Account } from '../domain/account.ts'
import type { RoutesAnswer, RoutesQuestion } from '../domain/route.ts'
import { parseQuestion } from './parse-question.ts'
import { inquire, planAll, type QuoteDependencies, type QuoteOptions, quotePlanned } from './quote-routes.ts'
import { rankRoutes } from './rank.ts'

/**
 * Finds the routes by which a wallet can pay a request now, best first, and says of every other candidate why it is none.
 *
 * @throws WaybillError for input that is not valid (INVALID_…, MISSING_FIELD, INCOMPLETE_FEE), and REQUEST_NOT_FOUND; the signal's reason when
 *   it fires. Chains that fail never throw: the answer is then `degraded`
 */
export type FindRoutes = (account: Account, question: RoutesQuestion, options: QuoteOptions) => Promise<RoutesAnswer>

/** Makes {@link FindRoutes}. */
export function createFindRoutes(dependencies: QuoteDependencies): FindRoutes {
  return async (account, rawQuestion, options) => {
    const question = parseQuestion(rawQuestion)
    const inquiry = await inquire(account, question, options.signal, dependencies)
    if (inquiry.search === undefined) return inquiry.answer
    const quoted = await quotePlanned(planAll(inquiry, dependencies), question, options, dependencies)
    return { ...inquiry.answer, ...quoted, routes: rankRoutes(quoted.routes) }
  }
}
