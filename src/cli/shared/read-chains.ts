import { readFile } from 'node:fs/promises'
import { type ChainDirectory, createChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { type Config, ConfigError, readConfig } from '../../config.ts'
import { type CommandContext, UsageError } from './command.ts'
import { stampDataFolder } from './stamp-data-folder.ts'

/** The configuration and the chains of a command. */
interface Setup {
  readonly config: Config
  /** Undefined for the demo, which creates its chains at start. */
  readonly chains: readonly ChainConfig[] | undefined
}

/**
 * Reads the configuration and the chains file that it names.
 *
 * @param readMore - reads other files that the configuration names; its faults are reported with the rest
 * @throws ConfigError with all faults
 */
export async function readSetup(
  context: Pick<CommandContext, 'environment' | 'workingFolder'>,
  readMore: (config: Config) => Promise<unknown> = async () => {},
): Promise<Setup> {
  const { config, faults } = readConfig(context.environment, context.workingFolder)
  const [chains, more] = await Promise.allSettled([readChains(config, context), readMore(config)])
  const all = [...faults, ...faultsOf(chains), ...faultsOf(more)]
  if (all.length > 0 || chains.status === 'rejected') throw new ConfigError(all)
  return { config, chains: chains.value }
}

/**
 * The chains that the configuration names, the demo's included, for a command that works without any.
 *
 * @throws ConfigError with all faults of the chains file
 */
export async function readKnownChains(
  context: Pick<CommandContext, 'environment' | 'workingFolder'>,
): Promise<readonly ChainConfig[]> {
  const { config } = readConfig(context.environment, context.workingFolder)
  if (config.chains.kind === 'DEMO' && config.database.kind === 'URL') return []
  return chainsOrDemo({ chains: await readChains(config, context) })
}

/** The chains of the chains file, or those of the demo without their nodes. */
export async function chainsOrDemo({ chains }: Pick<Setup, 'chains'>): Promise<readonly ChainConfig[]> {
  return chains ?? (await import('../../../demo/describe-demo.ts')).describeDemoChains()
}

/** The same, for a command that writes into the data folder: it is marked as the demo's where it is. */
export async function readChainsToWrite(context: CommandContext): Promise<readonly ChainConfig[]> {
  const setup = await readSetup(context)
  if (setup.chains === undefined) await stampDataFolder(setup.config.dataDir, 'demo')
  return chainsOrDemo(setup)
}

/** @throws errors other than ConfigError */
function faultsOf(settled: PromiseSettledResult<unknown>): readonly string[] {
  if (settled.status === 'fulfilled') return []
  if (settled.reason instanceof ConfigError) return settled.reason.faults
  throw settled.reason
}

/**
 * The chains of the chains file; undefined for the demo, which creates its chains at start.
 *
 * @throws ConfigError with all faults of the file
 */
async function readChains(
  config: Config,
  { environment }: Pick<CommandContext, 'environment'>,
): Promise<readonly ChainConfig[] | undefined> {
  if (config.chains.kind === 'DEMO') return undefined
  if (config.chains.kind === 'NONE') return []
  const { path } = config.chains
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new ConfigError([`CHAINS_FILE cannot be read: ${error.message}`])
  })
  // The demo starts without the validator of schemas.
  const { parseChainsFile } = await import('../../chains/parse-chains-file.ts')
  const parsed = parseChainsFile(text, environment)
  if (!parsed.ok) throw new ConfigError(parsed.faults.map((fault) => `CHAINS_FILE ${path}: ${fault}`))
  return parsed.chains
}

/**
 * The chains of the chains file, for a command that needs one.
 *
 * @throws ConfigError when there are none
 */
export function requireChains({ chains }: Setup): ChainDirectory {
  if (chains !== undefined && chains.length > 0) return createChainDirectory(chains)
  throw new ConfigError(['CHAINS_FILE is not set or has no chains: this command needs the chains of a chains file'])
}

/**
 * The chains of the chains file, or of the demo that runs in DATA_DIR, for a command that calls their nodes while the service runs.
 *
 * @throws ConfigError when there are neither
 */
export async function findChains(setup: Setup, { signal }: Pick<CommandContext, 'signal'>): Promise<ChainDirectory> {
  const { config, chains } = setup
  if (chains !== undefined) return requireChains(setup)
  const { findRunningDemo } = await import('../../../demo/running-demo.ts')
  const demo = await findRunningDemo(config.dataDir, signal).catch((error: Error) => {
    throw new ConfigError([`CHAINS_FILE is not set, and ${error.message}`])
  })
  const { describeDemoChains } = await import('../../../demo/describe-demo.ts')
  return createChainDirectory(describeDemoChains(demo.file.chains))
}

/**
 * The configuration of the chain with a name, an alias or an id.
 *
 * @throws UsageError when the chains file has no such chain
 */
export function chainNamed(chains: ChainDirectory, word: string): ChainConfig {
  const resolved = chains.resolve(word)
  const config = resolved.kind === 'chain' ? chains.config(resolved.name) : undefined
  if (config !== undefined) return config
  const names = chains.configured.map(({ name }) => name).join(', ')
  throw new UsageError(`the chains file has no chain "${word}"; it has ${names}`)
}
