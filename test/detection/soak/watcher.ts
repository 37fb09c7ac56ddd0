/** Watches the payments of an account throughout, goes on after each break with the last cursor, and keeps the picture that the events paint. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Difference } from './judge.ts'
import type { Plan } from './seeded-plan.ts'
import { callService, type SoakService } from './soak-services.ts'

export interface Watcher {
  /** Events with a payment so far. */
  events(): number
  /** How often the watch was begun again. */
  breaks(): number
  /** What the picture and the stored payments have apart; none when they are equal. */
  compare(service: SoakService): Promise<Difference[]>
  /** Watches until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

interface WatcherOptions {
  readonly account: string
  readonly key: string
  readonly services: readonly SoakService[]
  readonly plan: Plan
  readonly onDifference: (difference: Difference) => void
}

interface WatchState extends WatcherOptions {
  /** The payments by id, as the last event reported them. */
  readonly picture: Map<string, PaymentJson>
  cursor: string | undefined
  events: number
  breaks: number
}

type PaymentJson = Readonly<Record<string, unknown>>

interface WatchEvent {
  readonly type: 'ADDED' | 'UPDATED' | 'REMOVED' | 'HEARTBEAT'
  readonly id?: string
  readonly payment?: PaymentJson
  readonly watchCursor: string
}

/** Makes a watcher whose watch begins before the first payment of its account. */
export async function createWatcher(options: WatcherOptions): Promise<Watcher> {
  const [service] = options.services
  if (service === undefined) throw new Error('there is no service')
  const { watchCursor } = await callService(service, options.key, { path: '/payments?limit=1' })
  const state: WatchState = { ...options, picture: new Map(), cursor: String(watchCursor), events: 0, breaks: 0 }
  return {
    events: () => state.events,
    breaks: () => state.breaks,
    compare: (asked) => compare(state, asked),
    async run(signal) {
      while (!signal.aborted) {
        // A service that was killed or frozen breaks the watch; the other goes on.
        await watchOnce(state, signal).catch(() => {})
        if (signal.aborted) return
        state.breaks++
        await sleep(100)
      }
    },
  }
}

/** Longer than a heartbeat takes: a process that is frozen sends nothing. */
const SILENT_MS = 20_000

async function watchOnce(state: WatchState, over: AbortSignal): Promise<void> {
  const { services, plan, key, cursor } = state
  const url = plan.pick(services).url()
  if (url === undefined || cursor === undefined) return
  const silence = new AbortController()
  const signal = AbortSignal.any([over, silence.signal])
  const timer = setTimeout(() => silence.abort(), SILENT_MS)
  try {
    const path = `/v1/payments:watch?watchCursor=${encodeURIComponent(cursor)}`
    const response = await fetch(`${url}${path}`, { headers: { 'x-api-key': key }, signal })
    if (response.status === 400) {
      state.onDifference({ what: 'a watch cannot go on', detail: { answer: await response.text() } })
      return
    }
    if (response.status !== 200 || response.body === null) return
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of response.body) {
      timer.refresh()
      const lines = `${rest}${decoder.decode(bytes, { stream: true })}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(state, (JSON.parse(line) as { readonly result: WatchEvent }).result)
    }
  } finally {
    clearTimeout(timer)
  }
}

/** Paints an event, which must fit what was reported before. */
function take(state: WatchState, event: WatchEvent): void {
  state.cursor = event.watchCursor
  const { type, id, payment } = event
  if (type === 'HEARTBEAT' || id === undefined) return
  const { picture, account, onDifference } = state
  state.events++
  if ((type === 'ADDED') === picture.has(id)) {
    onDifference({ what: 'a watch repeats a payment, or has missed one', detail: { account, type, id } })
  }
  if (type === 'REMOVED') picture.delete(id)
  else if (payment !== undefined) picture.set(id, payment)
}

async function compare({ account, key, picture }: WatchState, service: SoakService): Promise<Difference[]> {
  const stored = await readStored(service, key)
  // Confirmations are those of the moment when an event was sent.
  const text = (payment: PaymentJson) => JSON.stringify({ ...payment, confirmations: undefined })
  const differing = [...new Set([...stored.keys(), ...picture.keys()])].filter((id) => {
    const [one, other] = [stored.get(id), picture.get(id)]
    return one === undefined || other === undefined || text(one) !== text(other)
  })
  return differing.map((id) => ({
    what: 'what a watch reported is not what is stored',
    detail: { account, id, stored: stored.get(id), watched: picture.get(id) },
  }))
}

async function readStored(service: SoakService, key: string): Promise<Map<string, PaymentJson>> {
  const stored = new Map<string, PaymentJson>()
  let cursor: string | undefined
  do {
    const page = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const answer = await callService(service, key, { path: `/payments?limit=100${page}` })
    for (const payment of answer['payments'] as PaymentJson[]) stored.set(String(payment['id']), payment)
    const { nextCursor } = answer['pagination'] as { nextCursor?: string }
    cursor = nextCursor
  } while (cursor !== undefined)
  return stored
}
