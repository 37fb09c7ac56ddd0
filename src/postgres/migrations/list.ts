import { schema } from './0001-schema.ts'
import { metadataByAmount } from './0002-metadata-by-amount.ts'
import type { Migration } from './migration.ts'

/** All steps of the schema, oldest first. A released step is never changed; a later one corrects it. */
export const MIGRATIONS: readonly Migration[] = [schema, metadataByAmount]
