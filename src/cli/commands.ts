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
  async keys() {
    const keys = await import('./commands/keys-command.ts')
    return [keys.keysCreate, keys.keysRotate, keys.keysList, keys.keysRevoke]
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
    const [{ chainsStatus }, { chainsCheck, chainsRestart }] = await Promise.all([
      import('./commands/chains-status-command.ts'),
      import('./commands/chains-command.ts'),
    ])
    return [chainsStatus, chainsCheck, chainsRestart]
  },
  async verify() {
    const { verifyCommand } = await import('./commands/verify-command.ts')
    return [verifyCommand]
  },
  async unmatched() {
    const { unmatchedList, unmatchedAccept } = await import('./commands/unmatched-command.ts')
    return [unmatchedList, unmatchedAccept]
  },
  async demo() {
    const { demoPay, demoRefund } = await import('./commands/demo-command.ts')
    return [demoPay, demoRefund]
  },
}

/** @returns the commands that begin with the first word; all if none does */
export async function loadCommands([first = '']: readonly string[]): Promise<readonly Command[]> {
  const group = Object.hasOwn(groups, first) ? groups[first] : undefined
  const loaded = await Promise.all((group === undefined ? Object.values(groups) : [group]).map((load) => load()))
  return loaded.flat()
}
