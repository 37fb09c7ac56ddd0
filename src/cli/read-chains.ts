import { readFile } from 'node:fs/promises'
import { type Config, ConfigError } from '../config.ts'
import { type ChainDirectory, createChainDirectory } from '../domain/chain.ts'
import type { ChainConfig } from '../domain/chains-file.ts'
import { parseChainsFile } from '../domain/parse-chains-file.ts'
import { type CommandContext, UsageError } from './command.ts'

/**
 * The chains of the chains file; nothing for the demo, whose chains are made as it starts.
 *
 * @throws ConfigError with every fault of the file
 */
export async function readChains(
  config: Config,
  { environment }: Pick<CommandContext, 'environment'>,
): Promise<readonly ChainConfig[] | undefined> {
  if (config.chains.kind === 'DEMO') return undefined
  if (config.chains.kind === 'NONE') return []
  const { path } = config.chains
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new ConfigError([`CHAINS_FILE cannot be read: ${error.message}`])
  })
  const parsed = parseChainsFile(text, environment)
  if (!parsed.ok) throw new ConfigError(parsed.faults.map((fault) => `CHAINS_FILE ${path}: ${fault}`))
  return parsed.chains
}

/**
 * The chains of the chains file, for a command that works on nothing else.
 *
 * @throws ConfigError with every fault of the file, and where there is none
 */
export async function requireChains(
  config: Config,
  context: Pick<CommandContext, 'environment'>,
): Promise<ChainDirectory> {
  const chains = await readChains(config, context)
  if (chains !== undefined && chains.length > 0) return createChainDirectory(chains)
  throw new ConfigError(['CHAINS_FILE is not set, or none: this command works on the chains of a chains file'])
}

/**
 * The configuration of the chain that a word names.
 *
 * @throws UsageError for one that the chains file does not have
 */
export function chainNamed(chains: ChainDirectory, word: string): ChainConfig {
  const resolved = chains.resolve(word)
  const config = resolved.kind === 'chain' ? chains.config(resolved.name) : undefined
  if (config !== undefined) return config
  const names = chains.configured.map(({ name }) => name).join(', ')
  throw new UsageError(`"${word}" is no chain of the chains file, which has ${names}`)
}
