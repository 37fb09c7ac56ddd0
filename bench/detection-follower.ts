/**
 * A process that follows the computed chain until it is killed.
 *
 *   node bench/detection-follower.ts '{"url":"http://127.0.0.1:1","connection":{…},"owner":"a"}'
 */
import { createChainDirectory } from '../src/chains/chain-directory.ts'
import { createTokenDirectory } from '../src/chains/token-directory.ts'
import { createDetection } from '../src/detection/detection.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { benchConfig } from './detection/bench-chain.ts'

const { url, connection, owner } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly url: string
  readonly connection: Parameters<typeof createDatabase>[0]
  readonly owner: string
}
const config = benchConfig([url])
createDetection({
  knex: createDatabase(connection, { poolMax: 4 }),
  chains: createChainDirectory([config]),
  tokens: createTokenDirectory([config]),
  logger: { debug() {}, info() {}, warn() {}, error: console.error },
  clock: () => new Date(),
  owner,
}).start()
