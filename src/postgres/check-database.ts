import type { Knex } from 'knex'

/**
 * Sees whether a database answers, so that a start that cannot work says so in a sentence.
 *
 * @param url - its password is not told
 * @throws Error naming where the database was looked for; its cause is what the database or the way to it said
 */
export async function checkDatabase(knex: Knex, url: string): Promise<void> {
  try {
    await knex.raw('select 1')
  } catch (error) {
    throw new Error(`the database at ${placeOf(url)} cannot be used; see DATABASE_URL`, { cause: error })
  }
}

/** Where a database is, without user and password. */
export function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host}${pathname}`
}
