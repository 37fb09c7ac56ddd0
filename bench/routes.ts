/**
 * Measures the search for routes of a wallet on four chains with three tokens and a coin each, with the quotes of all providers, on nodes
 * that answer after 5, 50, 150 and 300 ms. Compares it with viem, which only reads the balances and prices: in a loop, the simplest code,
 * and with a multicall and a batch a chain, the fastest.
 *
 *   npm run bench:routes -- [--rounds N] [--warm-up CALLS] [--profile]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Figure, median, report } from './report.ts'
import type { Order, Subject, Took } from './routes/caller.ts'
import { startNetwork } from './routes/network.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '2000' },
    profile: { type: 'boolean', default: false },
  },
})
const ROUNDS = Number(values.rounds)
const WARM_UP_CALLS = Number(values['warm-up'])
/**
 * A round is short and the subjects alternate, so that other work on the machine affects all of them alike; but it is long enough that
 * the garbage of its calls is collected within it.
 */
const CALLS = 200
const AT_ONCE = 32

const network = await startNetwork(AT_ONCE)
const caller = startCaller(
  values.profile ? ['--cpu-prof', '--cpu-prof-dir=bench/out', '--cpu-prof-name=routes.cpuprofile'] : [],
)
/** A process of its own, so that the garbage of viem is not collected in ours. */
const viemCaller = startCaller([])

function startCaller(execArgv: readonly string[]): ChildProcess {
  const child = fork(join(import.meta.dirname, 'routes/caller.ts'), { execArgv: [...execArgv] })
  child.once('exit', (code) => {
    if (code !== 0) process.exit(1)
  })
  return child
}

async function run(order: Order): Promise<Took> {
  const child = order.subject.startsWith('VIEM') ? viemCaller : caller
  child.send(order)
  const [took] = (await once(child, 'message')) as [Took]
  return took
}

async function stop(): Promise<void> {
  const ends = [caller, viemCaller].map((child) => once(child, 'exit'))
  for (const child of [caller, viemCaller]) child.disconnect()
  await Promise.all(ends)
  await network.stop()
}

async function repeat(rounds: number, orders: readonly Order[]): Promise<readonly Took[][]> {
  const all: Took[][] = orders.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, order] of orders.entries()) all[i]?.push(await run(order))
  }
  return all
}

const order = (subject: Subject): Order => ({ subject, calls: CALLS, atOnce: 1 })
const [TOKEN, FIAT, VIEM, VIEM_MULTICALL] = [order('TOKEN'), order('FIAT'), order('VIEM'), order('VIEM_MULTICALL')]
const [SLOWEST, POSTS] = [order('SLOWEST'), order('POSTS')]
const MANY = { ...TOKEN, calls: CALLS * 2, atOnce: AT_ONCE }

network.setLatency('NONE')
// V8 optimises for some thousand calls.
await run({ ...TOKEN, configs: network.configs, calls: WARM_UP_CALLS })
await run({ ...VIEM, configs: network.configs, calls: values.profile ? 1 : 20 })
if (!values.profile) await run({ ...VIEM_MULTICALL, calls: WARM_UP_CALLS / 2 })
if (!values.profile) await run(MANY)

if (values.profile) {
  await repeat(ROUNDS, [TOKEN])
  await stop()
  process.exit(0)
}

network.takeCounts()
await run(TOKEN)
const bodies = network.lastBodies()
const roundTrips = Math.max(...Object.values(network.takeCounts())) / TOKEN.calls
await run(MANY)
const roundTripsOfMany = Math.max(...Object.values(network.takeCounts())) / MANY.calls

const cpu = (tooks: readonly Took[] | undefined) => median((tooks ?? []).map(({ cpuMs }) => cpuMs))
const [token, fiat, viem, multicall, posts] = await repeat(ROUNDS, [
  TOKEN,
  FIAT,
  { ...VIEM, calls: 10 },
  VIEM_MULTICALL,
  { ...POSTS, bodies },
])
// Separately, so that the garbage of 32 calls at once is not counted for single calls.
const [many] = await repeat(ROUNDS, [MANY])

network.setLatency('USUAL')
const slow = (order: Order, calls: number): Order => ({ ...order, calls })
const FIRST_ROUTE = slow(order('FIRST_ROUTE'), 15)
const [late, bare, lateViem, lateMulticall, lateMany, first] = await repeat(Math.ceil(ROUNDS / 4), [
  slow(TOKEN, 15),
  slow(SLOWEST, 15),
  slow(VIEM, 1),
  slow(VIEM_MULTICALL, 15),
  slow(MANY, AT_ONCE * 8),
  FIRST_ROUTE,
])
network.setLatency('SLOW_ORACLE')
const [firstOfSlow] = await repeat(1, [FIRST_ROUTE])
const p50 = (tooks: readonly Took[] | undefined) => median((tooks ?? []).flatMap(({ timesMs }) => timesMs))
const perSecond = (tooks: readonly Took[] | undefined) => median((tooks ?? []).map((took) => took.perSecond))

const figures: Figure[] = [
  { name: 'roundtrips.per-chain', value: roundTrips, unit: 'HTTP requests a call', target: { atMost: 1 } },
  { name: 'roundtrips.32-wallets', value: roundTripsOfMany, unit: 'HTTP requests a call' },
  { name: 'cpu.ms', value: cpu(token), unit: 'ms a call, direct, v2 and v3 quotes' },
  {
    name: 'cpu.ms.system',
    value: median((token ?? []).map(({ systemMs }) => systemMs)),
    unit: 'ms of it in the system',
  },
  { name: 'cpu.ms.exchanges', value: cpu(posts), unit: 'ms a call, the HTTP exchanges alone' },
  { name: 'cpu.ms.fiat', value: cpu(fiat), unit: 'ms a call, conversion quotes' },
  { name: 'cpu.ms.32-wallets', value: cpu(many), unit: 'ms a call' },
  { name: 'cpu.ms.viem', value: cpu(viem), unit: 'ms a call, 9 reads a chain, no quotes' },
  { name: 'cpu.ms.viem-multicall', value: cpu(multicall), unit: 'ms a call, the same reads, no quotes' },
  { name: 'cpu/viem', value: cpu(token) / cpu(viem), unit: 'ratio', target: { atMost: 0.06 } },
  { name: 'cpu/viem-multicall', value: cpu(token) / cpu(multicall), unit: 'ratio' },
  { name: 'p50', value: p50(late), unit: 'ms' },
  { name: 'p50.viem', value: p50(lateViem), unit: 'ms' },
  { name: 'p50.viem-multicall', value: p50(lateMulticall), unit: 'ms' },
  { name: 'first-route.ms', value: p50(first), unit: 'ms, streamed' },
  { name: 'first-route.ms.slow-oracle', value: p50(firstOfSlow), unit: 'ms, where an oracle takes 1,000' },
  { name: 'p50/slowest-chain', value: p50(late) / p50(bare), unit: 'ratio', target: { atMost: 1.2 } },
  { name: 'concurrency32/1', value: perSecond(lateMany) / perSecond(late), unit: 'ratio', target: { atLeast: 10 } },
  { name: 'concurrency32/1.no-latency', value: perSecond(many) / perSecond(token), unit: 'ratio' },
]
await stop()
await report('routes', figures)
