import { figures, type MeasuredFigure } from './measured-figures.ts'

/** A low and a high estimate. Equal where the number is exact. */
export interface Range {
  readonly low: number
  readonly high: number
}

/** What is planned for, and what is assumed where the caller says nothing. Every field is a number above 0 unless it says otherwise. */
export interface PlanInput {
  readonly accounts: number
  readonly paymentsPerDay: number
  readonly years: number
  /** Share of all payments that the largest account has. All rows of an account are on one worker. */
  readonly largestAccountPercent: number
  /** The busiest second against the mean. */
  readonly peak: number
  /** May be 0. */
  readonly searchesPerPayment: number
  /** May be 0. */
  readonly routesPerPayment: number
  /** Stored requests for each payment; may be 0. */
  readonly requestsPerPayment: number
  /** Later changes of a payment that stay in the log of changes for a week, such as its confirmation; may be 0. */
  readonly changesPerPayment: number
  /** Different combinations of network, currency, type and status in an account's payments. */
  readonly combinations: number
  /** Payments of the last so many days are searched often. */
  readonly hotDays: number
  readonly chains: number
  readonly blockSeconds: number
  readonly serverCores: number
  readonly serverMemoryGib: number
  readonly serverDiskGib: number
  /** Copies of each database server that can take over; may be 0. */
  readonly standbys: number
  /** In any currency. May be 0. */
  readonly priceCoreHour: number
  /** Of disk, and of the room for backups. May be 0. */
  readonly priceGibMonth: number
}

/** Sizes in bytes, processor in cores in the busiest second, money in the currency of the prices. */
export interface SizePlan {
  readonly payments: number
  readonly perSecond: { readonly mean: number; readonly peak: number }
  readonly disk: {
    readonly data: Range
    readonly indexes: Range
    readonly requests: Range
    readonly changeLog: Range
    readonly statistics: Range
    readonly wal: Range
    /** All of the above, with room for growth and maintenance. */
    readonly total: Range
    /** Elsewhere: one full copy and the write-ahead log of a week. */
    readonly backups: Range
  }
  /** Bytes that keep the hot part of rows and indexes in memory. */
  readonly memory: Range
  /** Pages that are read from disk in the busiest second, at most, when only the hot part is in memory. */
  readonly pagesPerSecond: number
  readonly databaseCores: Range
  readonly serviceCores: Range
  /** Database servers that hold accounts, standbys not counted. */
  readonly workers: Range
  /** Payments kept from which one server is too small, at the same days kept and the same searches: at the high and at the low estimate. */
  readonly oneServerUpTo: Range
  /** By what the number of workers is decided at the high estimate. */
  readonly decidedBy: 'disk' | 'memory' | 'processor'
  /** For `waybill distribute --shards`; 0 where one server is enough. */
  readonly shards: number
  readonly processes: Range
  /** HTTP requests to chain nodes a day: looks at the head, and quotes. */
  readonly nodeCallsPerDay: Range
  readonly costPerMonth: Range
  readonly costPerPayment: Range
  /** What no number of machines solves, in sentences. */
  readonly warnings: readonly string[]
}

export const GIB = 1024 ** 3
const DAYS_A_YEAR = 365
const DAYS_A_MONTH = DAYS_A_YEAR / 12
const SECONDS_A_DAY = 86_400
const HOURS_A_MONTH = 730
/** The service removes older changes (src/store/prune-changes.ts). */
const CHANGES_KEPT_DAYS = 7
const BACKUP_LOG_DAYS = 7
/** Disk that is left free: for vacuum, building an index, and time to order more. */
const FREE_DISK = 1.4
/** Of a server's memory, what may hold rows and indexes. */
const CACHE_SHARE = 0.75
/** How busy processors are in the busiest second. */
const BUSY_SHARE = 0.5
/** `max_wal_size` of each server. */
const WAL_ROOM = 8 * GIB
/** `waybill distribute` takes this number unless told otherwise. */
const LEAST_SHARDS = 32
const SHARDS_A_WORKER = 4
/** So that one can be replaced while the other serves. */
const LEAST_PROCESSES = 2
/** A coordinator plans statements and holds keys, queues and leases. */
const COORDINATOR_CORES = 4

/** Computes the plan. All numbers stay far below 2^53 for the inputs that `readOptions` accepts. */
export function computePlan(input: PlanInput): SizePlan {
  const days = input.years * DAYS_A_YEAR
  const payments = Math.round(input.paymentsPerDay * days)
  const mean = input.paymentsPerDay / SECONDS_A_DAY
  const peak = mean * input.peak
  const stored = storedBytes(input, payments)
  const memory = hotBytes(payments, Math.min(1, input.hotDays / days))
  const databaseCores = scale(databaseCpuMicros(input), peak / 1e6 / BUSY_SHARE)
  const serviceCores = scale(serviceCpuMicros(input), peak / 1e6 / BUSY_SHARE)
  const inUse = sum(Object.values(stored))
  const needs = {
    disk: scale(inUse, FREE_DISK / (input.serverDiskGib * GIB - WAL_ROOM)),
    memory: scale(memory, 1 / (input.serverMemoryGib * GIB * CACHE_SHARE)),
    processor: scale(databaseCores, 1 / input.serverCores),
  }
  const need = map((end) => Math.max(needs.disk[end], needs.memory[end], needs.processor[end]))
  const workers = map((end) => wholes(need[end]))
  const wal = map((end) => workers[end] * WAL_ROOM)
  const total = map((end) => inUse[end] * FREE_DISK + wal[end])
  const logADay = scale(rangeOf(figures.walPerPayment), input.paymentsPerDay * (1 + input.changesPerPayment))
  const backups = sum([inUse, scale(logADay, BACKUP_LOG_DAYS)])
  const processes = map((end) => Math.max(LEAST_PROCESSES, wholes(serviceCores[end])))
  const costPerMonth = monthlyCost(input, { workers, processes, total, backups })
  const shards = workers.high === 1 ? 0 : Math.max(LEAST_SHARDS, nextPowerOfTwo(workers.high * SHARDS_A_WORKER))
  return {
    payments,
    perSecond: { mean, peak },
    disk: { ...stored, wal, total, backups },
    memory,
    pagesPerSecond: peak * figures.pagesPerPayment.high * (1 + input.changesPerPayment),
    databaseCores,
    serviceCores,
    workers,
    oneServerUpTo: { low: Math.floor(payments / need.high), high: Math.floor(payments / need.low) },
    decidedBy: largestOf(needs),
    shards,
    processes,
    nodeCallsPerDay: nodeCalls(input),
    costPerMonth,
    costPerPayment: scale(costPerMonth, 1 / (input.paymentsPerDay * DAYS_A_MONTH)),
    warnings: warningsOf(input, needs, peak),
  }
}

function storedBytes(input: PlanInput, payments: number) {
  const changesADay = sum([
    rangeOf(figures.changeOfArrival),
    scale(rangeOf(figures.changeOfUpdate), input.changesPerPayment),
  ])
  const request = sum([rangeOf(figures.request), rangeOf(figures.requestTopic)])
  const keptDays = Math.min(CHANGES_KEPT_DAYS, input.years * DAYS_A_YEAR)
  return {
    data: scale(rangeOf(figures.paymentHeap), payments),
    indexes: scale(rangeOf(figures.paymentIndexes), payments),
    requests: scale(request, payments * input.requestsPerPayment),
    changeLog: scale(changesADay, input.paymentsPerDay * keptDays),
    // an account has at most as many combinations as payments
    statistics: scale(rangeOf(figures.statisticsCombination), Math.min(payments, input.accounts * input.combinations)),
  }
}

/**
 * Low: the entries of the hot days. High: with their rows, and with all entries by id, hash or request, since those of new payments lie
 * anywhere and are looked up when they come in.
 */
function hotBytes(payments: number, hotShare: number): Range {
  const { paymentHeap, paymentIndexes, hashIndexes } = figures
  const byTime = paymentIndexes.high - hashIndexes.high
  return {
    low: payments * hotShare * paymentIndexes.low,
    high: payments * (hashIndexes.high + hotShare * (byTime + paymentHeap.high)),
  }
}

/** µs of processor of the database for each payment, with its searches. A later change counts like an arrival. */
function databaseCpuMicros(input: PlanInput): Range {
  return sum([
    scale(rangeOf(figures.databasePerPayment), 1 + input.changesPerPayment),
    scale(rangeOf(figures.databasePerSearch), input.searchesPerPayment),
  ])
}

/** µs of processor of the service for each payment, with its searches and routes. */
function serviceCpuMicros(input: PlanInput): Range {
  return sum([
    rangeOf(figures.servicePerPayment),
    scale(rangeOf(figures.servicePerSearch), input.searchesPerPayment),
    scale(rangeOf(figures.servicePerRoutes), input.routesPerPayment),
  ])
}

function nodeCalls(input: PlanInput): Range {
  const looks = scale(rangeOf(figures.looksPerBlock), (input.chains * SECONDS_A_DAY) / input.blockSeconds)
  const routes = input.paymentsPerDay * input.routesPerPayment * input.chains
  return sum([looks, scale(rangeOf(figures.requestsPerRoutes), routes)])
}

function monthlyCost(
  input: PlanInput,
  { workers, processes, total, backups }: Record<'workers' | 'processes' | 'total' | 'backups', Range>,
): Range {
  const copies = 1 + input.standbys
  return map((end) => {
    const coordinator = workers[end] === 1 ? 0 : COORDINATOR_CORES
    const cores = (workers[end] * input.serverCores + coordinator) * copies + processes[end]
    const gib = (total[end] * copies + backups[end]) / GIB
    return cores * HOURS_A_MONTH * input.priceCoreHour + gib * input.priceGibMonth
  })
}

function warningsOf(input: PlanInput, needs: Readonly<Record<string, Range>>, peak: number): string[] {
  const largest = (Math.max(...Object.values(needs).map(({ high }) => high)) * input.largestAccountPercent) / 100
  const warnings: string[] = []
  if (largest > 1) {
    warnings.push(
      `The largest account needs ${wholes(largest)} workers at the high estimate, and an account cannot be divided: take larger servers, or several accounts.`,
    )
  }
  const perChain = figures.detectedPerSecond.low
  if (peak > perChain) {
    warnings.push(
      `${Math.ceil(peak)} payments in the busiest second: one process follows a chain and reads ${perChain} payments a second. Divide them over chains, or accept delay.`,
    )
  }
  return warnings
}

function largestOf(needs: Record<'disk' | 'memory' | 'processor', Range>): 'disk' | 'memory' | 'processor' {
  const { disk, memory, processor } = needs
  if (memory.high >= disk.high && memory.high >= processor.high) return 'memory'
  return disk.high >= processor.high ? 'disk' : 'processor'
}

function rangeOf({ low, high }: MeasuredFigure): Range {
  return { low, high }
}

function map(valueAt: (end: 'low' | 'high') => number): Range {
  return { low: valueAt('low'), high: valueAt('high') }
}

function scale(range: Range, factor: number): Range {
  return map((end) => range[end] * factor)
}

function sum(ranges: readonly Range[]): Range {
  return map((end) => ranges.reduce((total, range) => total + range[end], 0))
}

/** Machines are whole, and there is at least one. */
function wholes(amount: number): number {
  return Math.max(1, Math.ceil(amount))
}

function nextPowerOfTwo(amount: number): number {
  return 2 ** Math.ceil(Math.log2(amount))
}
