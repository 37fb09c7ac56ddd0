/**
 * Payments of all kinds, refunds and spoofs while chains reorganize, nodes die and lie, two services fight for the chains, and services,
 * database and nodes are killed. At the end all must be as the chains say, and on the way every answer a state that some chain had.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setUpMoney } from './acts.ts'
import { type AccountName, castOf, type Invoice, type StoreRequest } from './invoices.ts'
import { type Difference, judgeEnd, judgeUnmatched } from './judge.ts'
import { type FaultyNodes, startFaultyNodes } from './node-faults.ts'
import { ask, type ObserverCounts, observe } from './observer.ts'
import { createPayerActor, type PayerActor } from './payer-actor.ts'
import { type Plan, planOf } from './seeded-plan.ts'
import { type SoakChain, type SoakChainSpec, startSoakChain } from './soak-chain.ts'
import {
  callService,
  type Kills,
  runServiceFaults,
  ServiceError,
  type SoakDatabase,
  type SoakService,
  startSoakDatabase,
  startSoakService,
} from './soak-services.ts'
import { findDoubled, readUnmatched } from './stored-events.ts'
import { verifyChains } from './verify-chains.ts'
import { createWatcher, type Watcher } from './watcher.ts'

export interface SoakOptions {
  readonly seed: number
  readonly minutes: number
  /** 2 or 3. */
  readonly chains: number
  /** The path of hardhat's module `hardhat/hre`: its network is then the node of the first chain. */
  readonly hardhat?: string | undefined
  /** Faults that are left out, by name. */
  readonly without: readonly string[]
  /** For the files of nodes and database, and for what is found. */
  readonly folder: string
  readonly say: (line: string) => void
  /** Ends the faults before their time; the end is judged all the same. */
  readonly signal: AbortSignal
}

export interface SoakSummary {
  readonly seed: number
  /** Payment events that are on the chains at the end. */
  readonly payments: number
  readonly reorgs: number
  readonly maxReorgDepth: number
  readonly nodeFaults: number
  readonly kills: { readonly service: number; readonly database: number; readonly chain: number }
  /** Answers of the services that were judged. */
  readonly answers: number
  /** Those that lacked what a node had left out in the 30 s before, and balances of a chain that was far behind. */
  readonly excused: number
  /** Events with a payment that watches reported. */
  readonly watched: number
  readonly differences: number
}

const SPECS: readonly SoakChainSpec[] = [
  { network: 'ETHEREUM', chainId: 31_901, blockMs: 700, depth: 5, hasFinalizedTag: false },
  { network: 'POLYGON', chainId: 31_902, blockMs: 350, depth: 2, hasFinalizedTag: true },
  { network: 'BASE', chainId: 31_903, blockMs: 500, depth: 12, hasFinalizedTag: false },
]
const NODES = 3
const END_PATIENCE_MS = 120_000

interface Soak {
  readonly options: SoakOptions
  readonly chains: readonly SoakChain[]
  readonly nodes: readonly FaultyNodes[]
  readonly database: SoakDatabase
  readonly services: readonly SoakService[]
  readonly payers: PayerActor[]
  /** One for each account. */
  readonly watchers: Watcher[]
  readonly late: Set<Invoice>
  readonly differences: Difference[]
  readonly counts: ObserverCounts
  readonly kills: Kills & { chain: number }
  reorgs: number
  maxReorgDepth: number
}

export async function runSoak(options: SoakOptions): Promise<SoakSummary> {
  const soak = await openSoak(options)
  const { say, minutes, signal } = options
  let reporting: NodeJS.Timeout | undefined
  try {
    const failed = new AbortController()
    const over = AbortSignal.any([signal, failed.signal, AbortSignal.timeout(minutes * 60_000)])
    const quiet = new AbortController()
    const observing = observe(observed(soak), soak.counts, quiet.signal)
    const watching = soak.watchers.map((watcher) => watcher.run(quiet.signal))
    say('two services listen; payments and faults begin')
    reporting = setInterval(() => say(progressOf(soak)), minutes > 2 ? 30_000 : 10_000)
    const actors = [...soak.chains.map((_, index) => liveChain(soak, index, over)), ...runFaults(soak, over)]
    for (const actor of actors) actor.catch(() => failed.abort())
    const ended = await Promise.allSettled(actors)
    for (const each of ended) if (each.status === 'rejected') throw each.reason
    say('calm: all nodes are honest, and nothing more is paid')
    await comeToAnEnd(soak)
    const networks = soak.chains.map(({ spec }) => spec.network)
    soak.differences.push(...(await verifyChains(networks, environmentOf(soak, 'first'), say)))
    quiet.abort()
    await Promise.all([observing, ...watching])
    say(progressOf(soak))
    say(`sent: ${describeSent(soak)}`)
    await keepFindings(soak)
    return summaryOf(soak)
  } finally {
    clearInterval(reporting)
    await closeSoak(soak)
  }
}

async function openSoak(options: SoakOptions): Promise<Soak> {
  const { folder, seed, without } = options
  await mkdir(folder, { recursive: true })
  const specs = SPECS.slice(0, options.chains)
  const [database, ...chains] = await Promise.all([
    startSoakDatabase(join(folder, 'database')),
    ...specs.map((spec, index) =>
      startSoakChain({ ...spec, hardhat: index === 0 ? options.hardhat : undefined }, folder),
    ),
  ])
  for (const chain of chains) await giveMoney(chain)
  const nodes = await Promise.all(
    chains.map((chain, index) =>
      startFaultyNodes({
        target: chain.rpcUrl,
        otherTarget: (chains[(index + 1) % chains.length] as SoakChain).rpcUrl,
        count: NODES,
        planOf: (node) => planOf(seed, `node ${index} ${node}`),
        allowed: (fault) => !without.includes(fault),
      }),
    ),
  )
  const services = await Promise.all(
    ['first', 'second'].map((name, place) => startService(name, { folder, database, chains, nodes, place })),
  )
  const soak: Soak = {
    options,
    chains,
    nodes,
    database,
    services,
    payers: [],
    watchers: [],
    late: new Set(),
    differences: [],
    counts: { answers: 0, errors: new Map(), lastErrors: [], excused: 0 },
    kills: { service: 0, database: 0, frozen: 0, chain: 0 },
    reorgs: 0,
    maxReorgDepth: 0,
  }
  await untilAllListen(services)
  await registerWallets(soak)
  if (!without.includes('watches')) await openWatches(soak)
  return soak
}

async function giveMoney(chain: SoakChain): Promise<void> {
  const bySender = Map.groupBy(setUpMoney(chain), ({ from }) => from)
  await Promise.all(
    [...bySender.values()].map(async (calls) => {
      for (const { from, call } of calls) await chain.client.send(from, call, { gas: 3_000_000n })
    }),
  )
  await chain.mine()
}

async function openWatches(soak: Soak): Promise<void> {
  const { database, services, options, watchers } = soak
  for (const account of Object.keys(database.keys) as AccountName[]) {
    const plan = planOf(options.seed, `watcher ${account}`)
    const onDifference = (difference: Difference) => noteDifference(soak, difference)
    watchers.push(await createWatcher({ account, key: database.keys[account], services, plan, onDifference }))
  }
}

function noteDifference({ differences, options }: Soak, difference: Difference): void {
  differences.push(difference)
  options.say(`DIFFERENCE ${JSON.stringify(difference)}`)
}

interface ServiceGround extends Pick<Soak, 'database' | 'chains' | 'nodes'> {
  readonly folder: string
  /** The services prefer different nodes. */
  readonly place: number
}

async function startService(name: string, { folder, database, chains, nodes, place }: ServiceGround) {
  const configs = chains.map((chain, index) => {
    const urls = nodes[index]?.urls ?? []
    return chain.config([...urls.slice(place), ...urls.slice(0, place)])
  })
  await writeFile(chainsFile(folder, name), JSON.stringify({ chains: configs }))
  const environment = environmentOf({ options: { folder }, database }, name)
  return startSoakService({ name, folder, environment })
}

const chainsFile = (folder: string, name: string) => join(folder, `${name}-chains.json`)

function environmentOf(
  { options, database }: { options: Pick<SoakOptions, 'folder'>; database: SoakDatabase },
  name: string,
): Record<string, string> {
  return {
    PORT: '0',
    DATABASE_URL: database.url,
    DATA_DIR: join(options.folder, 'unused'),
    CHAINS_FILE: chainsFile(options.folder, name),
    LOG_LEVEL: 'info',
  }
}

async function untilAllListen(services: readonly SoakService[]): Promise<void> {
  while (services.some((service) => service.url() === undefined)) await sleep(20)
}

async function registerWallets({ chains, services, database }: Soak): Promise<void> {
  const [service] = services
  const [chain] = chains
  if (service === undefined || chain === undefined) throw new Error('there is no service')
  const body = { address: castOf(chain.accounts).hotWallet }
  await callService(service, database.keys.shop, { path: '/v1/wallets', body })
}

/** Stores a request through whichever service answers. */
function storeThrough({ services, database }: Soak, plan: Plan, signal: AbortSignal): StoreRequest {
  return async (account, terms) => {
    while (!signal.aborted) {
      try {
        await callService(plan.pick(services), database.keys[account], { path: '/v1/request', body: terms })
        return
      } catch (error) {
        if (error instanceof ServiceError && error.status < 500) throw error
        await sleep(100)
      }
    }
    throw new OverError()
  }
}

/** The time of the soak is over. */
class OverError extends Error {
  override readonly name = 'OverError'
}

async function liveChain(soak: Soak, index: number, over: AbortSignal): Promise<void> {
  const { chains, options, payers, late } = soak
  const chain = chains[index] as SoakChain
  const payer = createPayerActor({
    chain,
    others: chains.filter((other) => other !== chain),
    plan: planOf(options.seed, `payer ${index}`),
    store: storeThrough(soak, planOf(options.seed, `store ${index}`), over),
    onLate: (invoice) => void late.add(invoice),
  })
  payers.push(payer)
  await Promise.all([
    pay(chain, payer, { plan: planOf(options.seed, `pace ${index}`), over }),
    mineOn(soak, chain, { plan: planOf(options.seed, `miner ${index}`), over }),
  ])
}

interface ActorTerms {
  readonly plan: Plan
  readonly over: AbortSignal
}

async function pay(chain: SoakChain, payer: PayerActor, { plan, over }: ActorTerms): Promise<void> {
  while (!over.aborted) {
    await pause(plan.between(0, chain.spec.blockMs), over)
    await payer.act().catch((error: unknown) => {
      if (!(error instanceof OverError)) throw error
    })
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})

async function mineOn(soak: Soak, chain: SoakChain, { plan, over }: ActorTerms): Promise<void> {
  let killAfter = Number.POSITIVE_INFINITY
  const { without } = soak.options
  while (!over.aborted) {
    await pause(plan.between(chain.spec.blockMs / 2, (chain.spec.blockMs * 3) / 2), over)
    await chain.alone(async () => {
      await chain.mine()
      const sinceSave = chain.sinceSave()
      if (sinceSave !== undefined && sinceSave >= killAfter) {
        soak.kills.chain++
        await chain.kill(plan.between(100, 1_500))
      } else if (sinceSave === undefined && chain.canBeKilled && plan.chance(0.015) && !without.includes('chain')) {
        await chain.save()
        killAfter = plan.between(1, chain.spec.depth)
      } else if (
        sinceSave === undefined &&
        plan.chance(soak.options.minutes < 1 ? 0.15 : 0.06) &&
        !without.includes('reorg')
      ) {
        await replaceBlocks(soak, chain, plan)
      }
    })
  }
}

async function replaceBlocks(soak: Soak, chain: SoakChain, plan: Plan): Promise<void> {
  const depth = Math.min(chain.maxReorg(), plan.between(1, chain.spec.depth))
  if (depth === 0) return
  const kept = plan.pick([0, 0.5, 0.9, 1])
  await chain.reorg(depth, () => plan.chance(kept))
  soak.reorgs++
  soak.maxReorgDepth = Math.max(soak.maxReorgDepth, depth)
}

function runFaults({ nodes, services, database, kills, options }: Soak, over: AbortSignal): Promise<void>[] {
  const plan = planOf(options.seed, 'services')
  const every = options.minutes < 1 ? ([1_500, 4_000] as const) : ([4_000, 15_000] as const)
  const isLeftOut = options.without.includes('kills')
  return [
    ...nodes.map((each) => each.run(over)),
    ...(isLeftOut ? [] : [runServiceFaults({ services, database, plan, kills, every }, over)]),
  ]
}

const invoicesOf = ({ payers }: Soak) => payers.flatMap(({ invoices }) => invoices)

function storyOf({ chains }: Soak, network: string) {
  const chain = chains.find(({ spec }) => spec.network === network)
  if (chain === undefined) throw new Error(`there is no ${network}`)
  return chain.story
}

function observed(soak: Soak): Parameters<typeof observe>[0] {
  const { services, database, late, options } = soak
  return {
    services,
    keys: database.keys,
    invoices: () => invoicesOf(soak),
    storyOf: (network) => storyOf(soak, network),
    isLate: (invoice) => late.has(invoice),
    omittedSince: (network, ms) =>
      soak.nodes[soak.chains.findIndex(({ spec }) => spec.network === network)]?.omittedSince(ms) ?? false,
    plan: planOf(options.seed, 'observer'),
    asOf: new Map(),
    onDifference: (difference) => noteDifference(soak, difference),
  }
}

/** Makes everything final, waits until it is stored, and compares all of it. */
async function comeToAnEnd(soak: Soak): Promise<void> {
  const { chains, services, database, differences } = soak
  // Requests of late invoices are stored some seconds after their payment.
  await sleep(soak.late.size > 0 ? 200 : 0)
  for (const chain of chains) {
    await chain.alone(async () => {
      for (let block = 0; block < chain.spec.depth + 3; block++) await chain.mine()
    })
  }
  await untilAllListen(services)
  const untilMs = Date.now() + END_PATIENCE_MS
  let open = allQuestions(soak)
  let unmatched: Difference[] = []
  let watched: Difference[] = []
  for (;;) {
    open = await stillWrong(soak, open)
    unmatched = await unmatchedDifferences(soak)
    watched = await watchedDifferences(soak)
    if (open.length + unmatched.length + watched.length === 0 || Date.now() > untilMs) break
    await sleep(300)
  }
  for (const question of open) differences.push(...(await differencesOf(soak, question)))
  differences.push(...unmatched, ...watched, ...(await findDoubled(database.knex)))
}

type Question = Parameters<typeof ask>[0]

/** What is asked at the end: both services, about all requests. */
function allQuestions(soak: Soak): Question[] {
  const { services, database } = soak
  const requests = invoicesOf(soak).flatMap((invoice) => invoice.requests)
  return services.flatMap((service) =>
    requests.flatMap((request) => {
      const key = database.keys[request.account as keyof typeof database.keys]
      return (['PAYMENTS', 'BALANCE'] as const).map((kind) => ({ service, key, request, kind }))
    }),
  )
}

const ASKED_AT_ONCE = 8

async function stillWrong(soak: Soak, questions: readonly Question[]): Promise<Question[]> {
  const wrong: Question[] = []
  for (let at = 0; at < questions.length; at += ASKED_AT_ONCE) {
    const some = questions.slice(at, at + ASKED_AT_ONCE)
    const found = await Promise.all(some.map((question) => differencesOf(soak, question)))
    wrong.push(...some.filter((_, index) => found[index]?.length !== 0))
  }
  return wrong
}

async function differencesOf(soak: Soak, question: Question): Promise<Difference[]> {
  try {
    const difference = judgeEnd(await ask(question), storyOf(soak, question.request.network))
    return difference === undefined ? [] : [difference]
  } catch (error) {
    return [{ what: 'a service does not answer at the end', detail: { error: String(error) } }]
  }
}

async function unmatchedDifferences(soak: Soak): Promise<Difference[]> {
  const { database, chains } = soak
  const networks = new Map(chains.map(({ spec }) => [`eip155:${spec.chainId}`, spec.network]))
  const requests = invoicesOf(soak).flatMap((invoice) => invoice.requests)
  const rows = await readUnmatched(database.knex, networks)
  return judgeUnmatched(
    rows,
    requests,
    chains.map(({ story }) => story),
  )
}

/** What watches reported in all, beside what is stored. */
async function watchedDifferences({ watchers, services }: Soak): Promise<Difference[]> {
  const [service] = services
  if (service === undefined) return []
  try {
    return (await Promise.all(watchers.map((watcher) => watcher.compare(service)))).flat()
  } catch (error) {
    return [{ what: 'a service does not answer at the end', detail: { error: String(error) } }]
  }
}

function progressOf(soak: Soak): string {
  const { counts, kills, differences, watchers } = soak
  const breaks = watchers.reduce((sum, watcher) => sum + watcher.breaks(), 0)
  const { watched, payments, reorgs, nodeFaults } = summaryOf(soak)
  const heads = soak.chains.map(({ spec, story }, index) => {
    const states = soak.nodes[index]?.states().join(' ') ?? ''
    return `${spec.network} ${story.countFacts()} up to ${story.head()} (${states})`
  })
  const errors = [...counts.errors].map(([status, times]) => `${status}: ${times}`).join(', ')
  return (
    `${payments} payments, ${reorgs} reorgs, ${nodeFaults} node faults, kills ${JSON.stringify(kills)}, ${counts.answers} answers` +
    `${errors === '' ? '' : ` (errors ${errors})`}, ${counts.excused} excused, ${watched} events of watches that broke ${breaks} times, ${differences.length} differences; ${heads.join(', ')}`
  )
}

function describeSent({ chains }: Soak): string {
  const kinds = new Map<string, number>()
  for (const { sent } of chains) for (const [kind, times] of sent) kinds.set(kind, (kinds.get(kind) ?? 0) + times)
  return [...kinds].map(([kind, times]) => `${kind} ${times}`).join(', ')
}

function summaryOf({
  options,
  chains,
  nodes,
  watchers,
  kills,
  counts,
  differences,
  reorgs,
  maxReorgDepth,
}: Soak): SoakSummary {
  const { service, database, chain } = kills
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    seed: options.seed,
    payments: sum(chains.map(({ story }) => story.countFacts())),
    reorgs,
    maxReorgDepth,
    nodeFaults: sum(nodes.map((each) => each.faults())),
    kills: { service, database, chain },
    answers: counts.answers,
    excused: counts.excused,
    watched: sum(watchers.map((watcher) => watcher.events())),
    differences: differences.length,
  }
}

/** What one needs to look into differences. */
async function keepFindings({ differences, options, counts }: Soak): Promise<void> {
  if (differences.length > 0) {
    await writeFile(join(options.folder, 'differences.json'), JSON.stringify(differences, undefined, 2))
  }
  for (const error of counts.lastErrors) options.say(`last error: ${error}`)
}

async function closeSoak({ services, nodes, chains, database }: Soak): Promise<void> {
  await Promise.allSettled(services.map((service) => service.stop()))
  await Promise.allSettled([...nodes.map((each) => each.stop()), ...chains.map((chain) => chain.stop())])
  await database.stop()
}
