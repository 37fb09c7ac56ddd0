/** Notes that a key is in use; returns at once. */
export type RecordUse = (keyId: string) => void

/** How often one process writes of one key that it is used, in ms. */
const INTERVAL_MS = 60_000
const MOST_REMEMBERED = 10_000

/**
 * Makes what writes the last use of keys beside the calls: at most once a minute for each key, and never two statements at
 * once. What cannot be written is left out; the next use a minute later makes up for it.
 *
 * @param options.write - stores the time for all these keys
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
      // A failure of the database is told by the calls themselves.
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
    for (const oldest of recordedAtMs.keys()) {
      if (recordedAtMs.size <= MOST_REMEMBERED) break
      recordedAtMs.delete(oldest)
    }
    due.add(keyId)
    if (!isWriting) void writeUntilNothingIsDue()
  }
}
