import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { timed } from '../search/measure-class.ts'
import { writeModelLines } from '../search/measure-ingest.ts'
import { describePlace, type OpenPlace } from './open-place.ts'

interface ImportTerms {
  /** For the files that are imported. */
  readonly folder: string
  readonly rounds: number
  readonly say: (text: string) => void
}

const ROWS = 5_000
/** With new payments, each on the worker that the hash of its id gives. */
const ACCOUNTS = [3, 4, 5, 6].map((id) => ({ id, name: `account-${id}` }))

/**
 * Imports new payments into several accounts at once, into one database after the other.
 *
 * @returns payments a second
 */
export async function importAlternately(
  places: readonly OpenPlace[],
  { folder, rounds, say }: ImportTerms,
): Promise<number[]> {
  const spentMs = places.map(() => 0)
  const [first] = places
  for (let round = 0; round < rounds; round++) {
    const files = await Promise.all(
      ACCOUNTS.map(async ({ id }) => {
        const path = join(folder, `${round}-${id}.ndjson`)
        if (first !== undefined)
          await writeModelLines(path, { knex: first.knex, modelAccountId: 2, rows: ROWS, salt: `${round} ${id}` })
        return path
      }),
    )
    for (const [nth, place] of places.entries()) {
      spentMs[nth] = (spentMs[nth] ?? 0) + (await timed(() => importAll(place, files)))
    }
    say(`import: ${round + 1} of ${rounds} rounds`)
  }
  return spentMs.map((ms) => (ACCOUNTS.length * ROWS * rounds * 1_000) / ms)
}

async function importAll(place: OpenPlace, files: readonly string[]): Promise<void> {
  await Promise.all(
    ACCOUNTS.map(async (account, at) => {
      const counts = await importLines(createReadStream(files[at] as string), importPayments(place.knex, account))
      if (counts.written !== ROWS) {
        throw new Error(
          `${describePlace(place)} stored ${counts.written} of ${ROWS} payments: ${JSON.stringify(counts)}`,
        )
      }
    }),
  )
}
