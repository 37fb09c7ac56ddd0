import type { Account } from '../../src/domain/account.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import type { GroupName } from '../../src/search/sql/read-summary.ts'
import { createSummarizePayments, type SummaryInput } from '../../src/search/totals/summarize-payments.ts'
import type { Figure } from '../report.ts'
import { timed, timesOf } from './measure-class.ts'
import type { Subject } from './subject.ts'

const TIMEOUT_MS = 120_000
const ROUNDS = 5
const MONTH = { fromDate: '2025-01-01', toDate: '2025-01-31' }

const by = (...groupBy: GroupName[]): SummaryInput => ({ groupBy })
const byKey: SummaryInput = { groupBy: ['metadata'], metadataKey: 'channel' }

/** By the key beside groupings that indexes answer, of all payments, of a month, and of those with a pair. */
const summaries: Readonly<Record<string, SummaryInput>> = {
  'all.status': by('status'),
  'all.network': by('network'),
  'all.type': by('type'),
  'all.payee': by('payee'),
  'all.metadata': byKey,
  'all.metadata.status': { ...byKey, groupBy: ['metadata', 'status'] },
  'month.network': { ...by('network'), ...MONTH },
  'month.metadata': { ...byKey, ...MONTH },
  'network.status': { ...by('status'), network: ['GNOSIS'] },
  'pair.status': { ...by('status'), metadata: ['channel=web'] },
  'pair.metadata': { ...byKey, metadata: ['channel=web'] },
  'rare-pair.status': { ...by('status'), metadata: ['channel=mail'] },
}

/** Medians of summaries, which alternate; says how long each takes the first time. */
export async function measureSummaries(subject: Subject, say: (text: string) => void): Promise<Figure[]> {
  const { knex, account } = subject
  const parseFilter = (_: Account, input: SearchInput) => subject.parse(input)
  const summarize = createSummarizePayments({ knex, parseFilter, timeoutMs: TIMEOUT_MS })
  const times = Object.entries(summaries).map(([name, input]) => ({ name, input, seen: [] as number[] }))
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, input, seen } of times) {
      const ms = await timed(() => summarize(account, input))
      if (round === 0) say(`${name}: ${ms.toFixed(0)} ms the first time`)
      else seen.push(ms)
    }
  }
  return times.map(({ name, seen }) => ({ name: `summary.${name}`, value: timesOf(seen).p50, unit: 'ms' }))
}
