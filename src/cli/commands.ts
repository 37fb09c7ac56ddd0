import { auditCommand } from './audit-command.ts'
import { chainsCheck, chainsRestart } from './chains-command.ts'
import { checkCommand } from './check-command.ts'
import type { Command } from './command.ts'
import { demoPay, demoRefund, demoReorg } from './demo-command.ts'
import { exportPaymentsCommand, exportRequestsCommand } from './export-command.ts'
import { importPaymentsCommand, importRequestsCommand } from './import-command.ts'
import { keysAudit, keysCreate, keysList, keysRevoke, keysRotate } from './keys-command.ts'
import { migrateCommand } from './migrate-command.ts'
import { chainsRecheck } from './recheck-command.ts'
import { serveCommand } from './serve-command.ts'
import { unmatchedAccept, unmatchedList, unmatchedUnaccept } from './unmatched-command.ts'
import { walletsAdd, walletsList, walletsRemove } from './wallets-command.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  serveCommand,
  migrateCommand,
  keysCreate,
  keysRotate,
  keysList,
  keysRevoke,
  keysAudit,
  auditCommand,
  walletsAdd,
  walletsList,
  walletsRemove,
  importRequestsCommand,
  importPaymentsCommand,
  exportRequestsCommand,
  exportPaymentsCommand,
  checkCommand,
  chainsCheck,
  chainsRestart,
  chainsRecheck,
  unmatchedList,
  unmatchedAccept,
  unmatchedUnaccept,
  demoPay,
  demoReorg,
  demoRefund,
]
