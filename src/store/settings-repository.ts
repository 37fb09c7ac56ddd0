import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'

/** Reads a setting; undefined when it was never written. */
export async function readSetting(knex: Knex, name: string): Promise<Buffer | undefined> {
  const row = await knex('settings').where({ name }).first<{ value: Buffer } | undefined>('value')
  return row?.value
}

/**
 * Writes a setting unless it exists. Settings never change.
 *
 * @returns the stored value, the same for every process
 */
export async function writeSettingOnce(knex: Knex, name: string, value: Buffer): Promise<Buffer> {
  const present = await readSetting(knex, name)
  if (present !== undefined) return present
  await knex('settings').insert({ name, value }).onConflict('name').ignore()
  const stored = await readSetting(knex, name)
  if (stored === undefined) throw new Error(`the setting ${name} was removed while it was being written`)
  return stored
}

/** The 32 random bytes of a name, created by the first process that asks for them. */
export function getOrCreateSecret(knex: Knex, name: string): Promise<Buffer> {
  return writeSettingOnce(knex, name, randomBytes(32))
}
