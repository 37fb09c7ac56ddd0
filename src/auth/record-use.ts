import { dropOldest } from '../domain/collections.ts'

/** Records that a key is in use; returns at once. */
export type RecordUse = (keyId: string) => void

/** How often one process writes the last use of one key, in ms. */
const INTERVAL_MS = 60_000
const MAX_REMEMBERED = 10_000

/**
 * Writes the last use of keys in the background: at most once a minute for each key, one statement at a time. A write that fails
 * is dropped; the next use, a minute later, is written again.
 *
 * @param options.write - stores the time of last use for these keys
 */
export function createRecordUse(options: {
  readonly write: (keyIds: readonly string[], at: Date) => Promise<void>
  readonly now: () => Date
}): RecordUse {
  const { write, now } = options
  const recordedAtMs = new Map<string, number>()
  let due = new Set<string>()
  let isWriting = false

  async function writeUntilNothingIsDue(): Promise<void> {
    isWriting = true
    while (due.size > 0) {
      const keyIds = [...due]
      due = new Set()
      // The calls themselves report that the database fails.
      await write(keyIds, now()).catch(() => undefined)
    }
    isWriting = false
  }

  return (keyId) => {
    const nowMs = now().getTime()
    const lastMs = recordedAtMs.get(keyId)
    if (lastMs !== undefined && nowMs - lastMs < INTERVAL_MS) return
    recordedAtMs.delete(keyId)
    recordedAtMs.set(keyId, nowMs)
    dropOldest(recordedAtMs, MAX_REMEMBERED)
    due.add(keyId)
    if (!isWriting) void writeUntilNothingIsDue()
  }
}
