import { toCallError, type WaybillCallError } from './call-error.ts'
import { afterWait, backOff, sleep, within } from './retry.ts'

/** What who keeps a stream open may set. */
export interface KeepOpenOptions {
  /** Ends the stream; the iterator then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Called before each new connection with what ended the one before. */
  readonly onReconnect?: ((error: WaybillCallError) => void) | undefined
  /** A connection on which nothing comes for so long counts as cut. Default: 45,000, three heartbeats. */
  readonly silenceMs?: number | undefined
}

const SILENCE_MS = 45_000
const LONGEST_WAIT_MS = 30_000
/** A page that is refused a stream asks again no earlier than this. */
const REFUSED_WAIT_MS = 5_000

/** Codes after which another connection would end likewise: the caller has to change something. */
const FINAL_CODES = new Set([
  'invalid_argument',
  'not_found',
  'already_exists',
  'permission_denied',
  'failed_precondition',
  'out_of_range',
  'unimplemented',
  'unauthenticated',
])

/**
 * Reads a stream that does not end by itself, and opens it again when it was cut or fell silent.
 *
 * @param open - opens it where the last message left off
 * @throws WaybillCallError when another connection would not help, such as CURSOR_EXPIRED
 */
export async function* keepOpen<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  { signal, onReconnect, silenceMs = SILENCE_MS }: KeepOpenOptions,
): AsyncGenerator<T, void, undefined> {
  const silence = () => new Error(`nothing came for ${silenceMs} ms, not even a heartbeat`)
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted()
    const left = new AbortController()
    const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal])
    let error: WaybillCallError
    try {
      const messages = open(either)[Symbol.asyncIterator]()
      for (;;) {
        // Only the time in which the reader waits counts, not the time that it takes over a message.
        const next = await within(silenceMs, messages.next(), silence)
        if (next.done === true) throw new Error('the stream ended without an error')
        failures = 0
        yield next.value
      }
    } catch (thrown) {
      signal?.throwIfAborted()
      error = toCallError(thrown)
      if (FINAL_CODES.has(error.code)) throw error
    } finally {
      left.abort()
    }
    onReconnect?.(error)
    await sleep(waitBeforeReopening(error, failures), signal)
  }
}

function waitBeforeReopening({ code, retryAfterMs }: WaybillCallError, failures: number): number {
  const leastMs = Math.max(retryAfterMs ?? 0, code === 'resource_exhausted' ? REFUSED_WAIT_MS : 0)
  return leastMs > 0 ? afterWait(leastMs, Math.random()) : backOff(failures, Math.random(), LONGEST_WAIT_MS)
}
