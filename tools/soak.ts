/**
 * Pays, refunds and spoofs on local chains while chains reorganize, nodes fail and lie, and two services, their database and the nodes are
 * killed; then compares what the service stored with the chains, and asks `waybill verify`. Its last line is a JSON summary; exit code 1 when anything differs.
 *
 *   npm run soak -- --seed 7 --minutes 10                 --chains 3 adds a chain
 *   npm run soak -- --seed 7 --minutes 10 --node hardhat  the first chain is hardhat's network, which is never killed
 *   npm run soak -- --seed 7 --minutes 1 --without omits,kills
 *
 * The default seed is random. `--without` leaves out `down`, `reset`, `hang`, `busy`, `narrow`, `single`, `stale`, `forgetful`, `contradicts`,
 * `elsewhere`, `omits`, `limits` of nodes; `watches`; `reorg`, `chain`, `kills`.
 *
 * The plan derives from the seed; how the actions meet depends on the machine.
 */
import { rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runSoak } from '../test/detection/soak/run-soak.ts'
import { makeTempFolder } from '../test/support/temp-folder.ts'
import { installHardhat } from './install/install-hardhat.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    minutes: { type: 'string', default: '10' },
    chains: { type: 'string', default: '2' },
    node: { type: 'string', default: 'anvil' },
    without: { type: 'string', default: '' },
  },
})
const [seed, minutes, chains] = [Number(values.seed), Number(values.minutes), Number(values.chains)]
if (
  !Number.isInteger(seed) ||
  !(minutes > 0) ||
  ![2, 3].includes(chains) ||
  !['anvil', 'hardhat'].includes(values.node)
) {
  console.error('--seed takes a whole number, --minutes a number above 0, --chains 2 or 3, and --node anvil or hardhat')
  process.exit(2)
}

const hardhat = values.node === 'hardhat' ? installHardhat() : undefined
if (values.node === 'hardhat' && hardhat === undefined) {
  console.error('hardhat could not be installed: see what npm says above')
  process.exit(2)
}

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())
const startedAtMs = performance.now()
const say = (line: string) =>
  console.error(`${((performance.now() - startedAtMs) / 1_000).toFixed(0).padStart(5)} s  ${line}`)

const folder = await makeTempFolder('soak')
say(`seed ${seed}, files in ${folder}`)
const without = values.without.split(',').filter((name) => name !== '')
const summary = await runSoak({ seed, minutes, chains, hardhat, without, folder, say, signal: interrupted.signal })
if (summary.differences > 0) say(`what differs stands in ${folder}/differences.json, the log of each process beside it`)
else await rm(folder, { recursive: true, force: true })
console.log(JSON.stringify(summary))
process.exitCode = summary.differences > 0 ? 1 : 0
