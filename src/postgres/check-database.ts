import type { Knex } from 'knex'

/**
 * Checks that the database answers, so that a start fails with a clear message.
 *
 * @param url - its password does not appear in the message
 * @throws Error with the database's host and name; its cause is the connection error
 */
export async function checkDatabase(knex: Knex, url: string): Promise<void> {
  try {
    await knex.raw('select 1')
  } catch (error) {
    throw new Error(`the database at ${placeOf(url)} cannot be used; see DATABASE_URL`, { cause: error })
  }
}

/** Host and name of a database, without user and password. */
export function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host}${pathname}`
}
