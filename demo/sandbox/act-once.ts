import { dropOldest } from '../../src/domain/collections.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'

const KEY = /^[\x21-\x7e]{1,255}$/
const MAX_KEPT = 10_000

/** Acts once for each idempotency key, and gives the same answer again while the process runs. What fails may be tried again. */
export function createActOnce() {
  const kept = new Map<string, { readonly terms: string; readonly answer: Promise<unknown> }>()
  /**
   * @param key - of the caller; null acts every time
   * @param scope - whose key it is, and of which method
   * @throws WaybillError INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED, and what `act` throws
   */
  return async <T>({ key, scope, terms }: Once, act: () => Promise<T>): Promise<T> => {
    if (key === null) return act()
    if (!KEY.test(key)) throw waybillError('INVALID_IDEMPOTENCY_KEY', { detail: 'it is empty, too long, or not ASCII' })
    const [name, text] = [`${scope} ${key}`, JSON.stringify(terms)]
    const before = kept.get(name)
    if (before !== undefined && before.terms !== text) throw waybillError('IDEMPOTENCY_KEY_REUSED', {})
    if (before !== undefined) return before.answer as Promise<T>
    const answer = act()
    kept.set(name, { terms: text, answer })
    dropOldest(kept, MAX_KEPT)
    answer.catch(() => kept.delete(name))
    return answer
  }
}

interface Once {
  readonly key: string | null
  readonly scope: string
  readonly terms: object
}
