/** A client behind a balancer that gives calls to several processes in turn. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Balancer {
  add(url: string): void
  remove(url: string): void
  /** @returns the JSON of the answer. @throws Error when it is not 200 */
  call<T>(path: string, init?: CallTerms): Promise<T>
  /** Watches payments from a cursor until the signal fires, and goes on where a process stops. @throws Error when a watch fails otherwise */
  watch(cursor: string, signal: AbortSignal, onEvent: (event: WatchedEvent) => void): Promise<void>
  readonly calls: number
  /** Calls that were made again because their connection was refused or closed before an answer began. */
  readonly repeated: number
  readonly watches: number
}

interface CallTerms {
  readonly method?: 'POST'
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

interface WatchedEvent {
  readonly type: string
  readonly id?: string
  readonly watchCursor: string
}

const MAX_TRIES = 5
/** Without a pause all tries would be over before a process that listens again is asked. */
const PAUSE_MS = 50

/** @param key - the API key of all calls */
export function createBalancer(key: string): Balancer {
  const urls: string[] = []
  const counts = { calls: 0, repeated: 0, watches: 0 }
  let turn = 0

  /** The process whose turn it is; calls share the turns, so that without `not` one call may meet the same process each time. */
  function next(not: string | undefined): string | undefined {
    const others = urls.filter((url) => url !== not)
    const choice = others.length > 0 ? others : urls
    return choice[turn++ % choice.length]
  }

  async function ask(path: string, init: CallTerms = {}): Promise<Response> {
    counts.calls++
    let refused: string | undefined
    for (let tries = 1; ; tries++) {
      const url = next(refused)
      try {
        return await fetch(`${url}${path}`, {
          ...init,
          headers: { ...init.headers, 'x-api-key': key },
        })
      } catch (error) {
        if (tries >= MAX_TRIES || !isClosed(error)) throw error
        counts.repeated++
        refused = url
        await sleep(PAUSE_MS)
      }
    }
  }

  async function call<T>(path: string, init?: CallTerms): Promise<T> {
    const answer = await ask(path, init)
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`)
    return JSON.parse(text)
  }

  async function watch(from: string, signal: AbortSignal, onEvent: (event: WatchedEvent) => void): Promise<void> {
    let cursor = from
    while (!signal.aborted) {
      counts.watches++
      try {
        for await (const event of linesOf(
          await ask(`/v1/payments:watch?watchCursor=${encodeURIComponent(cursor)}`, { signal }),
        )) {
          cursor = event.watchCursor
          if (event.type !== 'HEARTBEAT') onEvent(event)
        }
      } catch (error) {
        if (!signal.aborted && !isClosed(error)) throw error
      }
    }
  }

  return {
    add: (url) => void urls.push(url),
    remove: (url) => void urls.splice(urls.indexOf(url), 1),
    call,
    watch,
    get calls() {
      return counts.calls
    },
    get repeated() {
      return counts.repeated
    },
    get watches() {
      return counts.watches
    },
  }
}

/** The events of a watch, up to the end of its stream, or until its process stops. */
async function* linesOf(answer: Response): AsyncGenerator<WatchedEvent> {
  if (answer.status !== 200 || answer.body === null) throw new Error(`watch: ${answer.status} ${await answer.text()}`)
  let rest = ''
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines.filter((each) => each.trim() !== '')) {
      const { result, error } = JSON.parse(line)
      if (error !== undefined && JSON.stringify(error).includes('SHUTTING_DOWN')) return
      if (error !== undefined) throw new Error(`watch: ${line}`)
      yield result
    }
  }
}

/** Whether the connection was refused, or closed before its end. */
function isClosed(error: unknown): boolean {
  const { code, message } = ((error as Error).cause ?? error) as { code?: string; message: string }
  return ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'].includes(code ?? '') || message === 'terminated'
}
