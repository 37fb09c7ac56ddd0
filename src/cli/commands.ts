import { chainsRestart } from './chains-command.ts'
import type { Command } from './command.ts'
import { keysCreate, keysList, keysRevoke } from './keys-command.ts'
import { migrateCommand } from './migrate-command.ts'
import { serveCommand } from './serve-command.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  serveCommand,
  migrateCommand,
  keysCreate,
  keysList,
  keysRevoke,
  chainsRestart,
]
