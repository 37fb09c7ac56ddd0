/**
 * What providers and nodes say when they refuse, and the limits of some of them.
 *
 * Sources: `docs` is the provider's documentation, `source` the node's own code, `ponder`, `viem`, `subsquid` and `eRPC` the error tables of
 * those projects, `seen` what was answered to this service, and a repository with a number the issue or pull request that quotes it. Read in
 * November 2026.
 */
import type { AskedRange, BatchTerms, NodeTerms, RateTerms } from './limited-node.ts'

/** What a client has to do about a refusal. */
export type RefusalMeaning =
  | 'RATE_LIMITED'
  | 'BEHIND'
  | 'TOO_MANY_ADDRESSES'
  | 'POLICY'
  | 'BATCH_REFUSED'
  | 'TOO_LARGE'
  | 'PRUNED'
  | 'UNREACHABLE'

export interface KnownRefusal {
  readonly who: string
  readonly code: number
  readonly message: string
  readonly data?: unknown
  /** A field beside `message`. */
  readonly details?: string
  readonly means: RefusalMeaning
  readonly source: string
}

const refusal = (
  who: string,
  source: string,
  means: RefusalMeaning,
  code: number,
  message: string,
  data?: unknown,
): KnownRefusal => ({ who, source, means, code, message, ...(data === undefined ? {} : { data }) })

/** Refusals of `eth_getLogs`, word by word. */
export const KNOWN_REFUSALS: readonly KnownRefusal[] = [
  refusal(
    'Alchemy',
    'docs',
    'TOO_LARGE',
    -32600,
    'Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x1, 0xa].',
  ),
  refusal(
    'Alchemy',
    'docs',
    'TOO_LARGE',
    -32602,
    'Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range',
  ),
  refusal('Alchemy', 'docs', 'RATE_LIMITED', 429, 'Your app has exceeded its compute units per second capacity.'),
  refusal('Alchemy', 'docs', 'RATE_LIMITED', 429, 'Monthly capacity limit exceeded. Visit your dashboard to upgrade.'),
  refusal(
    'Infura',
    'docs',
    'TOO_LARGE',
    -32005,
    'query returned more than 10000 results. Try with this block range [0x10, 0x20].',
  ),
  refusal('Infura', 'eRPC', 'TOO_LARGE', -32602, 'range 20000 exceeds limit of 10000'),
  refusal('Infura', 'docs', 'RATE_LIMITED', -32005, 'project ID request rate exceeded'),
  refusal('Infura', 'docs', 'RATE_LIMITED', -32005, 'daily request count exceeded, request rate limited', {
    rate: { backoff_seconds: 30 },
  }),
  refusal('Infura', 'docs', 'TOO_LARGE', -32005, 'query timeout exceeded'),
  {
    ...refusal('Infura', 'docs.metamask.io, avoid-rate-limiting', 'RATE_LIMITED', 402, 'Payment Required'),
    details: 'You have reached your daily credit limit. To continue making requests, upgrade your plan',
  },
  {
    ...refusal('Infura', 'docs.metamask.io, avoid-rate-limiting', 'RATE_LIMITED', 429, 'Too Many Requests'),
    details: 'You have surpassed your allowed throughput limit. Reduce the amount of requests per second',
  },
  refusal('Infura', 'docs', 'TOO_MANY_ADDRESSES', -32005, '6000 filters. The current limit is 5000'),
  refusal('QuickNode', 'docs', 'TOO_LARGE', -32614, 'eth_getLogs is limited to a 10,000 range'),
  refusal(
    'QuickNode',
    'docs',
    'RATE_LIMITED',
    -32007,
    '15/second request limit reached - reduce calls per second or upgrade your account',
  ),
  refusal(
    'QuickNode',
    'docs, error-references',
    'RATE_LIMITED',
    429,
    'The requests per second (RPS) of your requests are higher than your plan allows.',
  ),
  refusal('QuickNode', 'docs', 'RATE_LIMITED', -32012, 'credits limited to 300/sec'),
  refusal('QuickNode', 'docs', 'RATE_LIMITED', -32009, 'trace requests limited to 2/sec'),
  refusal('dRPC', 'eRPC', 'TOO_LARGE', 35, 'ranges over 10000 blocks are not supported on freetier'),
  refusal('dRPC', 'eRPC', 'TOO_LARGE', 35, 'ranges over 100 blocks are not supported on free plan'),
  refusal('dRPC', 'eRPC', 'BATCH_REFUSED', 31, 'Batch of more than 3 requests are not allowed on free tier'),
  refusal('dRPC', 'seen', 'BATCH_REFUSED', -32000, 'Batch of more than 1 requests are not allowed'),
  refusal(
    'dRPC',
    'eRPC',
    'TOO_LARGE',
    30,
    'Request timeout on the free tier, please upgrade your tier to the paid one',
  ),
  refusal('dRPC', 'eRPC', 'BEHIND', 26, 'Unknown block'),
  refusal('dRPC', 'eRPC', 'PRUNED', 27, 'Unknown state, please use an archive node'),
  refusal('Ankr', 'docs', 'TOO_LARGE', -32600, 'block range is too wide'),
  refusal('Ankr', 'docs', 'RATE_LIMITED', -32090, 'Too many requests, reason: call rate limit exhausted, retry in 10s'),
  refusal(
    'Ankr',
    'docs',
    'RATE_LIMITED',
    -32090,
    'Too many requests, reason: call rate limit exhausted, retry in 10m0s',
  ),
  refusal('Ankr', 'docs', 'UNREACHABLE', -32055, 'No nodes available'),
  refusal(
    'Chainstack',
    'docs',
    'TOO_LARGE',
    -32002,
    'Block range limit exceeded. See more details at https://docs.chainstack.com',
  ),
  refusal('Chainstack', 'docs', 'RATE_LIMITED', -32005, "You've exceeded the RPS limit available on the current plan."),
  refusal('PublicNode', 'ponder', 'TOO_LARGE', -32701, 'exceed maximum block range: 50000'),
  refusal(
    'PublicNode',
    'ponder',
    'POLICY',
    -32701,
    'Please specify an address in your request or, to remove restrictions, order a dedicated full node',
  ),
  refusal('1RPC', 'ponder', 'TOO_LARGE', -32602, 'eth_getLogs is limited to a 1000 blocks range'),
  refusal(
    'BlockPI',
    'ponder',
    'TOO_LARGE',
    -32602,
    'eth_getLogs is limited to 1024 block range. Please check the parameter requirements',
  ),
  refusal('BlockPI', 'ponder', 'TOO_LARGE', -32602, 'response size should not greater than 10000000 bytes'),
  refusal('thirdweb', 'ponder', 'TOO_LARGE', -32602, 'Maximum allowed number of requested blocks is 1000'),
  refusal('Coinbase', 'ponder', 'TOO_LARGE', -32602, 'please limit the query to at most 1000 blocks'),
  refusal(
    'Cloudflare',
    'ponder',
    'TOO_LARGE',
    -32047,
    'Invalid eth_getLogs request. "fromBlock"-"toBlock" range too large. Max range: 800',
  ),
  refusal('Merkle', 'ponder', 'TOO_LARGE', -32000, 'range is too large, max is 1k blocks'),
  refusal('Tenderly', 'ponder', 'TOO_LARGE', -32602, 'invalid params', 'range 5000 is bigger than range limit 2000'),
  refusal('Base', 'ponder', 'TOO_LARGE', -32011, 'no backend is currently healthy to serve traffic'),
  refusal('Base', 'ponder', 'TOO_LARGE', -32602, 'block range too large'),
  refusal('Optimism', 'ponder', 'TOO_LARGE', -32020, 'backend response too large'),
  refusal(
    'Avalanche',
    'ponder',
    'TOO_LARGE',
    -32000,
    'requested too many blocks from 1 to 5000, maximum is set to 2048',
  ),
  refusal('Arbitrum', 'ponder', 'TOO_LARGE', -32000, 'logs matched by query exceeds limit of 10000'),
  refusal('Arc', 'subsquid', 'TOO_LARGE', -32012, 'requested range too large'),
  refusal('Arc', 'circlefin/arc-node 383', 'TOO_LARGE', -32600, 'Query exceeds max block range of 10000'),
  refusal('Goldsky', 'docs, error-codes', 'TOO_LARGE', -32012, 'Range too large'),
  refusal('Goldsky', 'docs, error-codes', 'RATE_LIMITED', -32005, 'Rate limit exceeded'),
  refusal('BlockVision', 'docs, error-code-reference', 'RATE_LIMITED', -32605, 'Rate Limit'),
  refusal(
    'BlockVision',
    'docs, error-code-reference',
    'RATE_LIMITED',
    -32607,
    'The call limit has been reached, please upgrade your subscription',
  ),
  refusal('nodewell', 'docs, errors', 'RATE_LIMITED', -32008, 'Insufficient quota'),
  refusal('BNB Chain, whose public nodes give no logs', 'bnb-chain/bsc 1215', 'TOO_LARGE', -32005, 'limit exceeded'),
  refusal('Candle', 'AlphaWallet/alpha-wallet-ios 5277', 'TOO_LARGE', -32600, 'block range too high'),
  refusal(
    'Morph',
    'enviodev/hyperindex 605',
    'TOO_LARGE',
    -32000,
    'block range is larger than max block range, block range = 5120, max block range = 5000',
  ),
  refusal('Arc', 'subsquid', 'BEHIND', -32014, 'requested data not available'),
  refusal('Harmony', 'ponder', 'TOO_LARGE', -32000, 'query must be smaller than size 1024'),
  refusal('Moonriver', 'ponder', 'TOO_LARGE', -32603, 'block range is too wide (maximum 1024)'),
  refusal('Somnia', 'ponder', 'TOO_LARGE', -32000, 'block range exceeds 1000'),
  refusal('Tron', 'ponder', 'TOO_LARGE', -32600, 'exceed max block range: 5000'),
  refusal('Swell', 'ponder', 'TOO_LARGE', -32600, 'block range greater than 10000 max'),
  refusal('geth', 'source', 'TOO_LARGE', -32602, 'exceed maximum block range 5000'),
  refusal('geth', 'source', 'BATCH_REFUSED', -32600, 'batch too large'),
  refusal('geth', 'source', 'TOO_LARGE', -32003, 'response too large'),
  refusal('geth', 'source', 'TOO_MANY_ADDRESSES', -32602, 'exceed max addresses or topics per search position'),
  refusal('geth', 'source', 'PRUNED', 4444, 'pruned history unavailable'),
  refusal('geth', 'source', 'BEHIND', -32602, 'block range extends beyond current head block'),
  refusal('reth', 'source', 'TOO_LARGE', -32602, 'query exceeds max block range 100000'),
  refusal('reth', 'source', 'TOO_LARGE', -32602, 'query exceeds max results 20000, retry with the range 100-200'),
  refusal('reth', 'source', 'TOO_LARGE', -32008, 'Response is too big'),
  refusal('Erigon', 'source', 'TOO_LARGE', -32000, 'query block range exceeds server limit, narrow your filter: 1000'),
  refusal('Erigon', 'source', 'TOO_LARGE', -32000, 'query returns too many logs, narrow your filter: 20000'),
  refusal(
    'Erigon',
    'source',
    'BATCH_REFUSED',
    -32000,
    'batch limit 100 exceeded (can increase by --rpc.batch.limit). Requested batch of size: 101',
  ),
  refusal('Nethermind', 'source', 'TOO_LARGE', -32005, 'Too many logs requested. Max logs per response is 20000.'),
  refusal('Besu', 'source', 'TOO_LARGE', -32005, 'Requested range exceeds maximum RPC range limit'),
  refusal('Besu', 'source', 'BATCH_REFUSED', -32005, 'Number of requests exceeds max batch size'),
  ...(
    [
      ['ranges over 500 blocks are not supported', -32000],
      ['exceeded max allowed range', -32000],
      ['Log query range exceeds limit', -32000],
      ['Maximum allowed number of requested blocks is 500', -32000],
      ['too wide blocks range', -32000],
      ['range is over 500 blocks', -32000],
      ['max query range exceeded', -32000],
      ['must be smaller than size 500', -32000],
    ] as const
  ).map(([message, code]) => refusal('unnamed', 'seen', 'TOO_LARGE', code, message)),
]

/** Limits of a provider, scaled down so that a small chain reaches them. */
export interface NodeProfile {
  readonly name: string
  readonly source: string
  readonly terms: NodeTerms
}

const profile = (name: string, source: string, terms: NodeTerms): NodeProfile => ({ name, source, terms })

const range = (blocks: number, code: number, say: (asked: AskedRange) => string, status?: number, data?: string) => ({
  range: {
    blocks,
    refuse: (asked: AskedRange) => ({
      code,
      message: say(asked),
      ...(status === undefined ? {} : { status }),
      ...(data === undefined ? {} : { data }),
    }),
  },
})

const rate = (allowed: number, form: RateTerms['form'], options: Partial<RateTerms> = {}): { rate: RateTerms } => ({
  rate: {
    allowed,
    windowMs: 1_000,
    counts: 'REQUESTS',
    form,
    refusal: { code: -32005, message: 'project ID request rate exceeded' },
    ...options,
  },
})

const batch = (most: number, form: BatchTerms['form'], code: number, message: string, status?: number) => ({
  batch: { most, form, refusal: { code, message, ...(status === undefined ? {} : { status }) } },
})

const hex = (block: number) => `0x${block.toString(16)}`

/** Ranges of blocks. */
const RANGE_PROFILES: readonly NodeProfile[] = [
  profile(
    'Alchemy, free',
    'docs',
    range(
      10,
      -32600,
      ({ from }) =>
        `You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + 9)}].`,
      400,
    ),
  ),
  profile(
    'Infura',
    'eRPC',
    range(100, -32602, ({ blocks }) => `range ${blocks} exceeds limit of 100`),
  ),
  profile(
    'QuickNode',
    'docs',
    range(100, -32614, () => 'eth_getLogs is limited to a 100 range', 413),
  ),
  profile(
    'QuickNode, trial',
    'docs',
    range(5, -32614, () => 'eth_getLogs is limited to a 5 range', 413),
  ),
  profile(
    'dRPC, whose number is wrong',
    'eRPC',
    range(101, 35, () => 'ranges over 10000 blocks are not supported on freetier', 400),
  ),
  profile(
    'Ankr',
    'docs',
    range(100, -32600, () => 'block range is too wide'),
  ),
  profile(
    'Chainstack',
    'docs',
    range(100, -32002, () => 'Block range limit exceeded.'),
  ),
  profile(
    'PublicNode',
    'ponder',
    range(500, -32701, () => 'exceed maximum block range: 500'),
  ),
  profile(
    'Merkle',
    'ponder',
    range(1_000, -32000, () => 'range is too large, max is 1k blocks'),
  ),
  profile(
    'Cloudflare',
    'ponder',
    range(80, -32047, () => 'range too large. Max range: 80'),
  ),
  profile(
    'Tenderly',
    'ponder',
    range(200, -32602, () => 'invalid params', undefined, 'range 2000 is bigger than range limit 200'),
  ),
  profile(
    'Avalanche',
    'ponder',
    range(204, -32000, ({ from, to }) => `requested too many blocks from ${from} to ${to}, maximum is set to 204`),
  ),
  profile(
    'Morph',
    'enviodev/hyperindex 605',
    range(
      100,
      -32000,
      ({ blocks }) => `block range is larger than max block range, block range = ${blocks}, max block range = 100`,
    ),
  ),
  profile(
    'Base',
    'ponder',
    range(200, -32011, () => 'no backend is currently healthy to serve traffic', 503),
  ),
  profile(
    'Erigon',
    'source',
    range(100, -32000, () => 'query block range exceeds server limit, narrow your filter: 100'),
  ),
  profile(
    'Besu',
    'source',
    range(500, -32005, () => 'Requested range exceeds maximum RPC range limit'),
  ),
  profile(
    'unknown words',
    'seen',
    range(70, -32000, () => 'nope'),
  ),
  profile(
    'an HTTP status alone',
    'seen',
    range(70, -32603, () => 'internal error', 500),
  ),
]

/** Numbers of logs. */
const LOGS_PROFILES: readonly NodeProfile[] = [
  profile('Infura, results', 'docs', {
    logs: {
      most: 6,
      refuse: ({ from, to }) => ({
        code: -32005,
        message: `query returned more than 6 results. Try with this block range [${hex(from)}, ${hex(Math.floor((from + to) / 2))}].`,
      }),
    },
  }),
  profile('Nethermind, logs', 'source', {
    logs: {
      most: 6,
      refuse: () => ({ code: -32005, message: 'Too many logs requested. Max logs per response is 6.' }),
    },
  }),
]

/** Batches. */
const BATCH_PROFILES: readonly NodeProfile[] = [
  profile(
    'dRPC, each item',
    'eRPC',
    batch(3, 'EACH_ITEM', 31, 'Batch of more than 3 requests are not allowed on free tier'),
  ),
  profile('dRPC, no batches', 'seen', batch(1, 'EACH_ITEM', -32000, 'Batch of more than 1 requests are not allowed')),
  profile('dRPC, status 500', 'seen', batch(3, 'STATUS', -32603, 'internal error', 500)),
  profile('geth', 'source', batch(10, 'ONE_ELEMENT', -32600, 'batch too large')),
  profile('Besu', 'source', batch(12, 'ONE_ERROR', -32005, 'Number of requests exceeds max batch size')),
  profile(
    'Erigon',
    'source',
    batch(10, 'ONE_ELEMENT', -32000, 'batch limit 10 exceeded (can increase by --rpc.batch.limit)'),
  ),
  profile('a gateway, status 413', 'seen', batch(8, 'BARE_STATUS', 0, '', 413)),
  profile('a gateway, status 501', 'seen', batch(1, 'BARE_STATUS', 0, '', 501)),
  profile('one error for a batch', 'seen', batch(1, 'ONE_ERROR', -32600, 'invalid request')),
  profile('ids as strings', 'seen', { stringIds: true }),
]

/** Rates. */
const RATE_PROFILES: readonly NodeProfile[] = [
  profile('429 without Retry-After', 'seen', rate(5, 'STATUS')),
  profile('429 with Retry-After', 'docs', rate(5, 'STATUS', { retryAfter: 'SECONDS' })),
  profile('429 with a date', 'RFC 9110', rate(5, 'STATUS', { retryAfter: 'DATE' })),
  profile(
    'Alchemy, inside HTTP 200',
    'docs',
    rate(5, 'ANSWER', {
      refusal: { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
    }),
  ),
  profile(
    'QuickNode, items count',
    'docs',
    rate(15, 'ITEMS', {
      counts: 'CALLS',
      refusal: { code: -32007, message: '15/second request limit reached - reduce calls per second' },
    }),
  ),
  profile(
    'QuickNode, items count, the whole refused',
    'docs',
    rate(15, 'STATUS', { counts: 'CALLS', refusal: { code: -32007, message: '15/second request limit reached' } }),
  ),
  profile(
    'Ankr',
    'docs',
    rate(20, 'ANSWER', {
      windowMs: 10_000,
      refusal: { code: -32090, message: 'Too many requests, reason: call rate limit exhausted, retry in 10s' },
    }),
  ),
  profile(
    'Infura',
    'docs',
    rate(5, 'STATUS', {
      refusal: { code: -32005, message: 'project ID request rate exceeded', data: { rate: { backoff_seconds: 1 } } },
    }),
  ),
]

/** Several limits at once, as free plans have them. */
const MIXED_PROFILES: readonly NodeProfile[] = [
  profile('dRPC, free', 'eRPC', {
    ...range(100, 35, () => 'ranges over 100 blocks are not supported on freetier', 400),
    ...batch(3, 'EACH_ITEM', 31, 'Batch of more than 3 requests are not allowed on free tier'),
    ...rate(10, 'STATUS'),
  }),
  profile('Alchemy, free, with a rate', 'docs', {
    ...range(10, -32600, () => 'You can make eth_getLogs requests with up to a 10 block range.', 400),
    ...rate(10, 'ANSWER', {
      refusal: { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
    }),
  }),
  profile('no batches, a rate', 'seen', { ...batch(1, 'ONE_ERROR', -32600, 'invalid request'), ...rate(4, 'STATUS') }),
]

export const NODE_PROFILES: readonly NodeProfile[] = [
  ...RANGE_PROFILES,
  ...LOGS_PROFILES,
  ...BATCH_PROFILES,
  ...RATE_PROFILES,
  ...MIXED_PROFILES,
]
