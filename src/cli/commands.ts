import type { Command } from './command.ts'
import { auditCommand } from './commands/audit-command.ts'
import { backupCommand } from './commands/backup-command.ts'
import { chainsCheck, chainsRestart } from './commands/chains-command.ts'
import { chainsPlan } from './commands/chains-plan-command.ts'
import { chainsReread } from './commands/chains-reread-command.ts'
import { chainsStatus } from './commands/chains-status-command.ts'
import { checkCommand } from './commands/check-command.ts'
import { demoPay, demoRefund, demoReorg } from './commands/demo-command.ts'
import { distributeCommand } from './commands/distribute-command.ts'
import { exportPaymentsCommand, exportRequestsCommand } from './commands/export-command.ts'
import { importPaymentsCommand, importRequestsCommand } from './commands/import-command.ts'
import { keysAudit, keysCreate, keysList, keysRevoke, keysRotate } from './commands/keys-command.ts'
import { migrateCommand } from './commands/migrate-command.ts'
import { chainsRecheck } from './commands/recheck-command.ts'
import { restoreCommand } from './commands/restore-command.ts'
import { serveCommand } from './commands/serve-command.ts'
import { unmatchedAccept, unmatchedExplain, unmatchedList, unmatchedUnaccept } from './commands/unmatched-command.ts'
import { verifyCommand } from './commands/verify-command.ts'
import { walletsAdd, walletsList, walletsRemove } from './commands/wallets-command.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  serveCommand,
  migrateCommand,
  distributeCommand,
  backupCommand,
  restoreCommand,
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
  chainsStatus,
  chainsCheck,
  chainsPlan,
  chainsRestart,
  chainsRecheck,
  chainsReread,
  verifyCommand,
  unmatchedList,
  unmatchedExplain,
  unmatchedAccept,
  unmatchedUnaccept,
  demoPay,
  demoReorg,
  demoRefund,
]
