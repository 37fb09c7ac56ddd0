import type { Command } from './command.ts'

/**
 * Loads the commands that begin with a word, in the order of the help. Together their modules take a second to load, and one command needs
 * few of them.
 */
const groups: Readonly<Record<string, () => Promise<readonly Command[]>>> = {
  async serve() {
    const { serveCommand } = await import('./commands/serve-command.ts')
    return [serveCommand]
  },
  async migrate() {
    const { migrateCommand } = await import('./commands/migrate-command.ts')
    return [migrateCommand]
  },
  async distribute() {
    const { distributeCommand } = await import('./commands/distribute-command.ts')
    return [distributeCommand]
  },
  async keys() {
    const keys = await import('./commands/keys-command.ts')
    return [keys.keysCreate, keys.keysRotate, keys.keysList, keys.keysRevoke, keys.keysRevokeAll, keys.keysAudit]
  },
  async audit() {
    const { auditCommand } = await import('./commands/audit-command.ts')
    return [auditCommand]
  },
  async wallets() {
    const wallets = await import('./commands/wallets-command.ts')
    return [wallets.walletsAdd, wallets.walletsList, wallets.walletsRemove]
  },
  async import() {
    const { importRequestsCommand, importPaymentsCommand } = await import('./commands/import-command.ts')
    return [importRequestsCommand, importPaymentsCommand]
  },
  async export() {
    const { exportRequestsCommand, exportPaymentsCommand } = await import('./commands/export-command.ts')
    return [exportRequestsCommand, exportPaymentsCommand]
  },
  async chains() {
    const [{ chainsStatus }, { chainsCheck, chainsRestart }, { chainsPlan }] = await Promise.all([
      import('./commands/chains-status-command.ts'),
      import('./commands/chains-command.ts'),
      import('./commands/chains-plan-command.ts'),
    ])
    return [chainsStatus, chainsCheck, chainsPlan, chainsRestart]
  },
  async verify() {
    const { verifyCommand } = await import('./commands/verify-command.ts')
    return [verifyCommand]
  },
  async unmatched() {
    const { unmatchedList, unmatchedExplain, unmatchedAccept, unmatchedUnaccept } = await import(
      './commands/unmatched-command.ts'
    )
    return [unmatchedList, unmatchedExplain, unmatchedAccept, unmatchedUnaccept]
  },
  async demo() {
    const { demoPay, demoReorg, demoRefund } = await import('./commands/demo-command.ts')
    return [demoPay, demoReorg, demoRefund]
  },
}

/** @returns the commands that begin with the first word; all if none does */
export async function loadCommands([first = '']: readonly string[]): Promise<readonly Command[]> {
  const group = Object.hasOwn(groups, first) ? groups[first] : undefined
  const loaded = await Promise.all((group === undefined ? Object.values(groups) : [group]).map((load) => load()))
  return loaded.flat()
}
