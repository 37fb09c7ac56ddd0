import { create, toJson } from '@bufbuild/protobuf'
import { UnmatchedEventSchema } from '../../../gen/payments/v1/unmatched_event_pb.js'
import { eventToProto } from '../../api/services/operations-handler.ts'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import { createTokenDirectory, type TokenDirectory } from '../../chains/token-directory.ts'
import {
  type AcceptedAs,
  acceptableReasons,
  type UnmatchedReason,
  unmatchedReasons,
} from '../../detection/match/match-event.ts'
import { explainUnmatched } from '../../detection/report/explain-unmatched.ts'
import { type ListedUnmatched, listUnmatched } from '../../detection/sql/unmatched-repository.ts'
import { type Address, formatAddress } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import { given } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import { suggestName } from '../../domain/nearest.ts'
import { requireDateRange } from '../../domain/require-input.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { type Command, EXIT_GOOD, parseWhole, UsageError, writeList } from '../shared/command.ts'
import { chainNamed, chainsOrDemo, findChains, readSetup } from '../shared/read-chains.ts'
import { withDetection } from '../shared/with-detection.ts'
import { asUsage, STORE_VARIABLES, withAccount, withSomeAccount } from '../shared/with-store.ts'

const DEFAULT_LIMIT = '100'
const MAX_LIMIT = 100_000
const MAX_INDEX = 999_999_999
const MAX_REASON_LENGTH = 500

/** `unmatched list`: one line an event, columns separated by tabs. */
const unmatchedList: Command = {
  path: ['unmatched', 'list'],
  summary:
    'List events of payment contracts that count as neither payment nor refund, newest first: time, chain, transaction hash, index of ' +
    'the event, account (- for none), reason, recipient, amount in base units, token (- for the native coin), payer (- for unknown).',
  takes: {
    '[--account A]': 'only this account',
    '[--chain NAME]': 'only this chain, by a name or id',
    '[--reason R]': `only this reason: one of ${unmatchedReasons.join(', ')}`,
    '[--since TIME]': 'only blocks at this time or later: a day (2026-03-01) or a time with its offset',
    '[--until TIME]': 'only blocks at this time or earlier; of a day, its end in UTC',
    '[--tx HASH]': 'only this transaction',
    '[--event N]': 'only the event of this index within its transaction, from 0',
    '[--limit N]': `how many at most (default ${DEFAULT_LIMIT})`,
    '[--explain]':
      'say of each event, for people to read, what happened, what would make it count, and which command accepts it',
    '[--json]': 'one JSON object an event, as GET /v1/unmatched gives it, with what happened and what to do',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const reason = given(options.reason, parseReason)
    const limit = parseWhole('limit', options.limit ?? DEFAULT_LIMIT, 0, MAX_LIMIT)
    const { since: fromDate, until: toDate } = options
    const range = async () => requireDateRange({ fromDate, toDate }, { fromDate: '--since', toDate: '--until' })
    const times = await asUsage(range())
    const txHashes = options.tx === undefined ? undefined : [parseHash(options.tx)]
    const eventIndex = given(options.event, (text) => parseWhole('event', text, 0, MAX_INDEX))
    const isJson = options['json'] !== undefined
    const isExplained = options['explain'] !== undefined
    if (isJson && isExplained) throw new UsageError('--json has the explanations: leave out --explain')
    const chains =
      isJson || options.chain !== undefined
        ? createChainDirectory(await chainsOrDemo(await readSetup(context)))
        : undefined
    const chainId = chains && options.chain && caip2Of(chainNamed(chains, options.chain).chainId)
    const textLines = isExplained ? explanationOf : lineOf
    const lineOfEvent = isJson && chains !== undefined ? jsonLines(createTokenDirectory(chains.configured)) : textLines
    return withSomeAccount(context, options.account, async (knex, account) => {
      const filter = {
        accountIds: account && [account.id],
        chainIds: chainId ? [chainId] : undefined,
        reasons: reason && [reason],
        txHashes,
        eventIndex,
        ...times,
      }
      const events = await listUnmatched(knex, filter, { rows: limit })
      writeList(context, events.map(lineOfEvent), 'event')
      return EXIT_GOOD
    })
  },
}

/** `unmatched accept`: reports on standard error. */
const unmatchedAccept: Command = {
  path: ['unmatched', 'accept'],
  summary:
    'Count an unmatched event as a payment or a refund. Reasons that can be accepted as a refund: ' +
    `${acceptableReasons.REFUND.join(', ')} (the last under the request's own reference); as a payment: ` +
    `${acceptableReasons.PAYMENT.join(', ')}. The event stays accepted when its chain is read again. The service may run.`,
  takes: {
    '--chain NAME': 'chain of the event, by a name or id',
    '--tx HASH': 'hash of its transaction',
    '--event N': 'index of the payment event within the transaction, from 0',
    '--account A': 'account for which the event counts',
    '[--as KIND]': 'payment or refund',
    '[--undo]': 'take an acceptance back: the rules apply to the event again',
    '--reason TEXT': 'why, for the audit log; 1 to 500 characters on one line',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const { as: kind, undo, account: name = '' } = options
    if ((kind === undefined) === (undo === undefined)) throw new UsageError('give either --as or --undo')
    const as = kind === undefined ? undefined : parseKind(kind)
    const txHash = parseHash(options.tx)
    const eventIndex = parseWhole('event', options.event, 0, MAX_INDEX)
    const note = parseNote(options.reason)
    const setup = await readSetup(context)
    const chains = await findChains(setup, context)
    const { name: network } = chainNamed(chains, options.chain ?? '')
    const { signal, stderr, actor } = context
    const logger = createLogger({ level: setup.config.logLevel, stream: stderr })
    return withAccount(context, name, async (knex, account) => {
      const decision = { account, txHash, eventIndex, note, actor, at: new Date() }
      await withDetection({ knex, chains, logger }, (detection) =>
        as === undefined
          ? detection.unaccept(network, decision, signal)
          : detection.accept(network, { ...decision, as }, signal),
      )
      const done = as === undefined ? 'no longer accepted' : `accepted as a ${as.toLowerCase()}`
      stderr.write(`event ${eventIndex} of ${txHash} on ${network} is ${done} for ${account.name}\n`)
      return EXIT_GOOD
    })
  },
}

export const commands: readonly Command[] = [unmatchedList, unmatchedAccept]

function jsonLines(tokens: TokenDirectory): (event: ListedUnmatched) => string {
  const explain = ({ reason, event }: ListedUnmatched) => explainUnmatched(reason, event)
  return (event) => {
    const message = create(UnmatchedEventSchema, eventToProto(event, { tokens, explain }))
    return JSON.stringify(toJson(UnmatchedEventSchema, message, { alwaysEmitImplicit: true }))
  }
}

function explanationOf(listed: ListedUnmatched): string {
  const { reason, network, txHash, eventIndex, blockNumber, timestamp, account, event } = listed
  const { explanation, remedy, acceptableAs } = explainUnmatched(reason, event)
  const lines = [
    `${reason}: event ${eventIndex} of ${txHash}`,
    `  where    block ${blockNumber} of ${network}, ${timestamp.toISOString()}`,
    `  account  ${account ?? 'none: no stored request has its reference'}`,
    `  what     ${explanation}`,
    `  to do    ${remedy}`,
  ]
  if (acceptableAs !== undefined && account !== undefined) {
    const which = `--chain ${network} --tx ${txHash} --event ${eventIndex} --account ${account}`
    lines.push(`  command  waybill unmatched accept ${which} --as ${acceptableAs.toLowerCase()} --reason 'WHY'`)
  }
  return lines.join('\n')
}

function parseReason(text: string): UnmatchedReason {
  const found = unmatchedReasons.find((reason) => reason === text.toUpperCase())
  if (found !== undefined) return found
  throw new UsageError(
    `--reason is "${text}", which is not a reason; ${suggestName(text.toUpperCase(), unmatchedReasons)}`,
  )
}

function parseKind(text: string): AcceptedAs {
  const kind = text.toUpperCase()
  if (kind === 'PAYMENT' || kind === 'REFUND') return kind
  throw new UsageError(`--as is "${text}": use payment or refund`)
}

function parseHash(text = ''): Hex {
  if (/^0x[0-9a-f]{64}$/i.test(text)) return text.toLowerCase() as Hex
  throw new UsageError(`--tx is "${text}", which is not a transaction hash: use 0x and 64 hexadecimal digits`)
}

function parseNote(text = ''): string {
  const isGood = text.trim() !== '' && Array.from(text).length <= MAX_REASON_LENGTH && !/\p{Cc}/u.test(text)
  if (isGood && text.isWellFormed()) return text
  throw new UsageError(`--reason must be a text of 1 to ${MAX_REASON_LENGTH} characters on one line`)
}

function lineOf({ timestamp, network, txHash, eventIndex, account = '-', reason, event }: ListedUnmatched): string {
  const { to, amount = '-', token, paidFrom } = event
  const columns = [addressOrDash(to), amount, addressOrDash(token), addressOrDash(paidFrom)]
  return [timestamp.toISOString(), network, txHash, eventIndex, account, reason, ...columns].join('\t')
}

function addressOrDash(address: string | undefined): string {
  return address === undefined ? '-' : formatAddress(address as Address)
}
