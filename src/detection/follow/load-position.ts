import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import { readBlocks } from '../sql/chain-blocks-repository.ts'
import { declareContracts } from '../sql/chain-contracts-repository.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import type { PaymentWriter } from '../write/payment-writer.ts'
import type { Finality } from './finality.ts'
import type { Position } from './next-step.ts'

/** What loading a chain's position needs. */
interface PositionSource {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly reader: ChainReader
  readonly writer: PaymentWriter
  readonly finality: Finality
}

/**
 * Reads from the database how far a chain was read. Begins to follow one that was never followed.
 *
 * @returns ALARM where the chain is stopped
 * @throws RpcError, of kind WRONG_CHAIN where the nodes are of another chain than before
 */
export async function loadPosition(
  source: PositionSource,
  signal: AbortSignal | undefined,
): Promise<Position | 'ALARM'> {
  const { knex, config, finality } = source
  const chainId = caip2Of(config.chainId)
  const stored = await findChain(knex, chainId)
  if (stored?.alarm !== undefined) return 'ALARM'
  if (stored === undefined) {
    await setFirstCheckpoint(source, signal)
    return loadPosition(source, signal)
  }
  await checkGenesis(source, stored.genesisHash, signal)
  finality.recall(stored.hasFinalizedTag)
  const addresses = followedContracts(config).map(({ address }) => address)
  await knex.transaction((trx) => declareContracts(trx, chainId, addresses, stored.scannedBlock))
  const blocks = await readBlocks(knex, chainId)
  const scanned = { number: stored.scannedBlock, hash: stored.scannedHash }
  const { headBlock, finalBlock } = stored
  return { scanned, blocks: blocks.length > 0 ? blocks : [scanned], headBlock, finalBlock }
}

/** A chain with the same id but another genesis block is another chain, and nothing that is stored is true of it. */
async function checkGenesis({ config, reader }: PositionSource, known: Hex, signal: AbortSignal | undefined) {
  const [genesis] = await reader.headers([0], signal)
  if (genesis === undefined || genesis.hash === known) return
  const text = `its genesis block was ${known} and is now ${genesis.hash}`
  throw new RpcError('WRONG_CHAIN', `${config.name} is not the chain that was followed before: ${text}`)
}

/** Sets the first checkpoint: the last final block. The blocks below it are read beside. */
async function setFirstCheckpoint(
  { config, reader, writer, finality }: PositionSource,
  signal: AbortSignal | undefined,
): Promise<void> {
  const view = await reader.view(0, config.finality.useFinalizedTag, signal)
  const byDepth = Math.max(0, view.head.number - config.finality.depth)
  const last = finality.finalBlock(view, byDepth)
  const [genesis, checkpoint] = await reader.headers([0, last], signal)
  if (genesis === undefined || checkpoint === undefined) {
    throw new RpcError('UNREACHABLE', `the node of ${config.name} does not have block ${last}`)
  }
  await writer.open(genesis.hash, checkpoint, view.head.number)
}
