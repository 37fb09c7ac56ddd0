/**
 * The figures that plans are made of. Each has the command that gave it and the day, on the machine of bench/README.md: two cores. A plan uses
 * nothing else that was measured; when a bench gives another figure, change it here and in bench/README.md.
 */

/** Low and high are the best and the worst that was seen; equal where one run was made. */
export interface MeasuredFigure {
  readonly what: string
  readonly low: number
  readonly high: number
  readonly unit: string
  readonly command: string
  readonly date: string
}

const size = { unit: 'bytes', command: 'npm run bench:size -- --rows 200000', date: '23 November 2026' } as const

export const figures = {
  paymentHeap: { what: 'row of a payment', low: 1_008, high: 1_008, ...size },
  /** Low: built afresh. High: as loose as they become when payments come in. */
  paymentIndexes: { what: 'all index entries of a payment', low: 1_757, high: 2_427, ...size },
  /** payments_pkey, payments_source_tx, payments_payment_reference, payments_request_id and the unique one that begins with tx_hash. */
  hashIndexes: { what: 'of them by id, hash or request', low: 361, high: 361, ...size },
  changeOfArrival: { what: 'arrival in the log of changes', low: 109, high: 109, ...size },
  changeOfUpdate: { what: 'later change in the log of changes', low: 2_041, high: 2_041, ...size },
  statisticsCombination: { what: 'combination in the statistics', low: 299, high: 299, ...size },
  request: { what: 'request with its indexes', low: 1_141, high: 1_141, ...size },
  requestTopic: { what: 'directory entry of a request', low: 147, high: 147, ...size },
  /** Low: a small database, written in bulk. High: imported into three million payments of an account after a checkpoint. */
  walPerPayment: {
    what: 'write-ahead log of a payment that comes in',
    low: 4_479,
    high: 26_000,
    unit: 'bytes',
    command: 'npm run bench:size -- --rows 200000; npm run bench:search -- --only ingest',
    date: '23 and 20 November 2026',
  },
  pagesPerPayment: {
    what: 'index pages, anywhere in the indexes, that a payment comes into',
    low: 12,
    high: 12,
    unit: 'pages',
    command: 'npm run bench:search -- --only ingest, in bench/LOG.md',
    date: '20 November 2026',
  },
  databasePerPayment: {
    what: "PostgreSQL's processor for a payment found on a chain, its request settled",
    low: 159,
    high: 324,
    unit: 'µs',
    command: 'npm run bench:detection -- --only backfill',
    date: '22 November 2026',
  },
  servicePerPayment: {
    what: "the service's processor for a payment found on a chain",
    low: 149,
    high: 181,
    unit: 'µs',
    command: 'npm run bench:detection -- --only backfill',
    date: '22 and 23 November 2026',
  },
  detectedPerSecond: {
    what: 'payments that one process reads from a chain',
    low: 2_619,
    high: 3_413,
    unit: 'a second',
    command: 'npm run bench:detection -- --only backfill',
    date: '22 and 23 November 2026',
  },
  /** The time that a whole search takes, since PostgreSQL's processor was not measured apart: more than it uses. */
  databasePerSearch: {
    what: 'search of 50 among ten million payments, median of 121 classes',
    low: 1_440,
    high: 3_050,
    unit: 'µs',
    command: 'npm run bench:search -- --data DIR',
    date: '20 and 22 November 2026',
  },
  servicePerSearch: {
    what: 'search of 50 payments in the service, to JSON',
    low: 1_130,
    high: 1_451,
    unit: 'µs',
    command: 'npm run bench:search -- --only path',
    date: '20 and 22 November 2026',
  },
  servicePerRoutes: {
    what: "the service's processor for the routes of a wallet over four chains",
    low: 1_530,
    high: 2_325,
    unit: 'µs',
    command: 'npm run bench:routes -- --rounds 6',
    date: '22 November 2026',
  },
  /** Low: 32 wallets at once. High: alone. */
  requestsPerRoutes: {
    what: 'HTTP requests to a chain for the routes of a wallet',
    low: 0.0625,
    high: 1,
    unit: 'a chain',
    command: 'npm run bench:routes -- --rounds 6',
    date: '22 November 2026',
  },
  looksPerBlock: {
    what: 'looks at the head of a chain until a payment in it is read',
    low: 1,
    high: 1,
    unit: 'a block',
    command: 'npm run bench:detection -- --only beside',
    date: '22 November 2026',
  },
} as const satisfies Readonly<Record<string, MeasuredFigure>>
