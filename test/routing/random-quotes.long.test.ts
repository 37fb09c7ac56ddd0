import { describe, expect, it } from 'vitest'
import { type StartNode, startAnvilNode, startGethNode, startHardhatNode } from '../support/chains/nodes.ts'
import { deployForPayers } from '../support/chains/payers-chain.ts'
import { offTheLine, type TakenQuote, takeRandomQuotes } from '../support/chains/random-quotes.ts'

const COUNT = 300
const FRESH_PAIRS = 43
const GWEI = 10n ** 9n

/** Paths of hardhat and geth; `npm run try:nodes` installs them and sets the variables. */
const { HARDHAT: hardhat = '', GETH: geth = '' } = process.env

const nodes: [name: string, start: StartNode, isThere: boolean][] = [
  ['anvil', startAnvilNode, true],
  ['hardhat', () => startHardhatNode(hardhat), hardhat !== ''],
  ['geth', () => startGethNode(geth), geth !== ''],
]

describe.each(nodes)('%s', (name, start, isThere) => {
  it.runIf(isThere)('pays by 300 random quotes: none fails, and each costs what was quoted', async () => {
    const node = await start()
    try {
      const chain = await deployForPayers(node, { fresh: FRESH_PAIRS })
      // Half with a constant base fee, as on a busy chain; half on an idle chain, whose base fee decays to zero.
      const taken = [
        ...(await takeRandomQuotes(chain, { count: COUNT / 2, seed: 7, baseFee: 8n * GWEI })),
        ...(await takeRandomQuotes(chain, { count: COUNT / 2, seed: 11 })),
      ]
      console.log(describeTaken(name, taken))
      expect(taken.length).toBe(COUNT)
      expect(offTheLine(taken)).toEqual([])
    } finally {
      await node.stop()
    }
  })
})

function describeTaken(name: string, taken: readonly TakenQuote[]): string {
  const shares = taken.flatMap((each) => each.shares)
  const limited = shares.filter((share) => share !== undefined)
  const lines = taken.map(({ gasLine }) => gasLine)
  const reasons = Map.groupBy(
    taken.flatMap((each) => each.reasons),
    (reason) => reason,
  )
  const range = (numbers: readonly number[]) =>
    `${Math.min(...numbers).toFixed(3)} to ${Math.max(...numbers).toFixed(3)}`
  return [
    `${name}: ${taken.length} quotes, ${shares.length} transactions, ${limited.length} with a limit, of which ${range(limited)} was used`,
    `  gas line / spent ${range(lines)}; ${[...reasons].map(([reason, all]) => `${reason} ${all.length}`).join(', ')}`,
  ].join('\n')
}
