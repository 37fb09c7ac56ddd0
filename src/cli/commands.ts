import type { Command } from './shared/command.ts'

type CommandModule = { readonly commands: readonly Command[] }

/**
 * Loads the commands that begin with a word, in the order of the help. Together their modules take a second to load, and one command needs
 * few of them.
 */
const groups: Readonly<Record<string, () => Promise<CommandModule>>> = {
  serve: () => import('./commands/serve-command.ts'),
  migrate: () => import('./commands/migrate-command.ts'),
  keys: () => import('./commands/keys-command.ts'),
  audit: () => import('./commands/audit-command.ts'),
  wallets: () => import('./commands/wallets-command.ts'),
  webhooks: () => import('./commands/webhooks-command.ts'),
  import: () => import('./commands/import-command.ts'),
  export: () => import('./commands/export-command.ts'),
  chains: () => import('./commands/chains-command.ts'),
  verify: () => import('./commands/verify-command.ts'),
  unmatched: () => import('./commands/unmatched-command.ts'),
  demo: () => import('./commands/demo-command.ts'),
  batch: () => import('./commands/batch-command.ts'),
  mcp: () => import('./commands/mcp-command.ts'),
}

/** @returns the commands that begin with the first word; all if none does */
export async function loadCommands([first = '']: readonly string[]): Promise<readonly Command[]> {
  const group = Object.hasOwn(groups, first) ? groups[first] : undefined
  const loaded = await Promise.all((group === undefined ? Object.values(groups) : [group]).map((load) => load()))
  return loaded.flatMap(({ commands }) => commands)
}
