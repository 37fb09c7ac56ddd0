/**
 * Measures how hostile clients affect another client and the memory of the service. Service, attacker and other client are separate
 * processes on loopback; the other client is at 127.0.0.1, each attacker at an address of its own unless `--shared`. The attacker's key has
 * the default rate of calls a minute, or that of `--rate`; 0 for no limit.
 *
 *   npm run bench:hostile -- [--only NAME,NAME] [--rounds N] [--shared] [--rate N]     p99 of the other client under each attack
 *   npm run bench:hostile -- --alone [--only NAME,NAME]                     what each attack costs without other clients
 *   npm run bench:hostile -- --minutes N [--only NAME,NAME]                 memory over N minutes of each attack
 */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { attacks } from './hostile/hostile-attacks.ts'
import { watchMemory } from './hostile/hostile-memory.ts'
import {
  type Service,
  startAttacker,
  startService,
  startSink,
  type Window,
  watch,
  watchAlone,
} from './hostile/hostile-service.ts'
import { type Figure, median, report } from './report.ts'

const CALM_MS = 2_000
const ATTACK_MS = 3_000
/** Long enough for the after-effects of an attack to end before the next window. */
const PAUSE_MS = 500
/** Calls of one key that an idle process answers. */
const AT_ONCE = 1_000

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    minutes: { type: 'string' },
    alone: { type: 'boolean', default: false },
    rate: { type: 'string', default: '300' },
    shared: { type: 'boolean', default: false },
  },
})
const names = values.only?.split(',') ?? Object.keys(attacks)
for (const name of names) if (attacks[name] === undefined) throw new Error(`there is no attack "${name}"`)

if (values.minutes !== undefined)
  await report('hostile-memory', await watchMemory(names, Number(values.minutes), values.rate))
else if (values.alone) await report('hostile-alone', await measureAllAlone())
else await report(values.shared ? 'hostile-shared' : 'hostile', await measureAll())

async function measureAll(): Promise<Figure[]> {
  const service = await startService(values.rate)
  const sink = await startSink()
  const figures: Figure[] = []
  try {
    // Its pages are made when they are first asked for, which takes a second once.
    await (await fetch(`http://127.0.0.1:${service.port}/docs`)).text()
    await watch(service, CALM_MS)
    figures.push(await measureOneKey(service))
    const { peakMib: startMib } = await watch(service, CALM_MS)
    for (const [n, name] of names.entries()) {
      const rounds: Round[] = []
      for (let round = 1; round <= Number(values.rounds); round++) {
        const localAddress = values.shared ? '127.0.0.1' : `127.0.${n + 1}.${round}`
        rounds.push(await measureRound(service, name, localAddress, service.port))
      }
      const floor = await measureRound(service, name, '127.0.0.1', sink.port)
      const alone = await measureAlone(service, name, values.shared ? '127.0.0.1' : `127.0.${n + 1}.99`)
      figures.push(...figuresOf(name, { rounds, floor, alone, startMib }))
    }
  } finally {
    sink.stop()
    await service.stop()
  }
  return figures
}

/** Measures an attack at its start, and after it has lasted long enough to exhaust the limits of an address. */
async function measureAllAlone(): Promise<Figure[]> {
  const service = await startService(values.rate)
  const figures: Figure[] = []
  try {
    for (const [n, name] of names.entries()) {
      const localAddress = values.shared ? '127.0.0.1' : `127.0.${n + 1}.98`
      const attacker = await startAttacker(name, { port: service.port, keys: service.attackerKeys, localAddress })
      const shares: number[] = []
      for (let window = 0; window < 4; window++) shares.push((await watchAlone(service, ATTACK_MS)) / ATTACK_MS)
      const { acts, seconds } = await attacker.stop()
      await wait(PAUSE_MS)
      const percent = shares.map((share) => `${(share * 100).toFixed(1)} %`)
      console.log(
        `${name}: ${(acts / seconds).toFixed(0)} acts/s; share of a processor in windows of 3 s: ${percent.join(', ')}`,
      )
      figures.push(
        { name: `first.${name}`, value: (shares[0] ?? 0) * 100, unit: '% of a processor' },
        { name: `last.${name}`, value: (shares.at(-1) ?? 0) * 100, unit: '% of a processor' },
      )
    }
  } finally {
    await service.stop()
  }
  return figures
}

/** One key uses the idle process whole: so many of its calls at once are all answered. */
async function measureOneKey({ port, key }: Service): Promise<Figure> {
  const agent = new Agent({ keepAlive: true })
  const statuses = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const asked = get({ port, host: '127.0.0.1', path: '/payments?limit=5', agent, headers: { 'x-api-key': key } })
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }),
  )
  agent.destroy()
  const answered = statuses.filter((status) => status === 200).length
  console.log(`one key alone: ${answered} of ${AT_ONCE} calls at once answered`)
  return { name: 'alone.answered', value: answered, unit: `of ${AT_ONCE} at once`, target: { atLeast: AT_ONCE } }
}

interface Round {
  readonly logLines: number
  readonly calm: Window
  readonly attacked: Window
  readonly perSecond: number
  readonly acts: number
  readonly connections: number
  readonly refused: number
}

async function measureRound(service: Service, name: string, localAddress: string, port: number): Promise<Round> {
  const calm = await watch(service, CALM_MS)
  const attacker = await startAttacker(name, { port, keys: service.attackerKeys, localAddress })
  const linesBefore = service.logLines()
  const attacked = await watch(service, ATTACK_MS)
  const logLines = service.logLines() - linesBefore - attacked.calls
  const { acts, seconds, connections, refused } = await attacker.stop()
  await wait(PAUSE_MS)
  return { logLines, calm, attacked, perSecond: acts / seconds, acts, connections, refused }
}

/** The cost of the attack without other clients: steadier than p99, which other work on the machine changes. */
async function measureAlone(service: Service, name: string, localAddress: string): Promise<Alone> {
  const attacker = await startAttacker(name, { port: service.port, keys: service.attackerKeys, localAddress })
  const cpuMs = await watchAlone(service, ATTACK_MS)
  const { acts } = await attacker.stop()
  await wait(PAUSE_MS)
  return { cpuShare: cpuMs / ATTACK_MS, cpuUsPerAct: (cpuMs * 1000) / Math.max(1, acts) }
}

interface Alone {
  /** Share of one processor. */
  readonly cpuShare: number
  readonly cpuUsPerAct: number
}

interface Measured {
  readonly rounds: readonly Round[]
  readonly floor: Round
  readonly alone: Alone
  readonly startMib: number
}

function figuresOf(name: string, { rounds, floor, alone, startMib }: Measured): Figure[] {
  const of = (read: (round: Round) => number) => median(rounds.map(read))
  const calmMs = median([...rounds, floor].map(({ calm }) => calm.p99Ms))
  const ratio = of(({ attacked }) => attacked.p99Ms) / calmMs
  const floorRatio = floor.attacked.p99Ms / calmMs
  const peakMib = Math.max(...rounds.map(({ attacked }) => attacked.peakMib))
  const row = {
    'acts/s': of(({ perSecond }) => perSecond).toFixed(0),
    connections: of(({ connections }) => connections),
    unanswered: of(({ refused }) => refused),
    'calm ms': calmMs.toFixed(1),
    'p99 ×': ratio.toFixed(2),
    'floor ×': floorRatio.toFixed(2),
    'cpu %': (alone.cpuShare * 100).toFixed(0),
    'cpu µs/act': alone.cpuUsPerAct.toFixed(0),
    MiB: peakMib,
    'log lines': of(({ logLines }) => logLines),
  }
  console.log(`${name}: ${JSON.stringify(row)}`)
  return [
    { name: `p99.${name}`, value: ratio, unit: '× calm', target: { atMost: 2 } },
    { name: `floor.${name}`, value: floorRatio, unit: '× calm' },
    { name: `cpu.${name}`, value: alone.cpuUsPerAct, unit: 'µs/act' },
    { name: `lines.${name}`, value: of(({ logLines }) => logLines), unit: 'lines of log' },
    { name: `memory.${name}`, value: peakMib - startMib, unit: 'MiB more', target: { atMost: 256 } },
  ]
}
