/**
 * Search and import on one PostgreSQL server and on Citus clusters, alternately on the same machine: what a search and an imported payment cost
 * where the rows of accounts are on workers. All workers share the processors of this machine, so the figures tell what sharding costs, not
 * what more machines give.
 *
 *   npm run bench:citus -- --url postgres://… --url postgres://… --rows 200000
 *
 * Each URL names an empty database, on a server or on a coordinator whose workers are joined to that database. The first is what the others are compared
 * with. The databases are filled, and sharded where they are on a coordinator; they are not emptied afterwards.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { importAlternately } from './citus/import-alternately.ts'
import { describePlace, type OpenPlace, openPlace } from './citus/open-place.ts'
import { type PlaceTimes, searchAlternately } from './citus/search-alternately.ts'
import { type Figure, median, report } from './report.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string', multiple: true, default: [] },
    rows: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '1' },
    /** How often the databases alternate. */
    rounds: { type: 'string', default: '5' },
  },
})
if (values.url.length < 2) throw new Error('name at least two databases with --url')
const [rows, seed, rounds] = [Number(values.rows), Number(values.seed), Number(values.rounds)]
const say = (text: string) => console.error(text)

await using stack = new AsyncDisposableStack()
const places: OpenPlace[] = []
for (const url of values.url) places.push(await openPlace(url, { rows, seed, say }, stack))

const folder = await mkdtemp(join(tmpdir(), 'waybill-citus-'))
stack.defer(() => rm(folder, { recursive: true }))
const searches = await searchAlternately(places, { seed, rounds, say })
const imports = await importAlternately(places, { folder, rounds, say })

await report(
  'citus',
  places.flatMap((place, at) => figuresOf(describePlace(place), searches[at], imports[at])),
)

function figuresOf(name: string, search: PlaceTimes | undefined, imported: number | undefined): Figure[] {
  const [base, baseImport] = [searches[0], imports[0]]
  if (search === undefined || imported === undefined || base === undefined || baseImport === undefined) return []
  const found: Figure[] = [
    { name: `${name}: search.p50`, value: search.p50, unit: 'ms' },
    { name: `${name}: search.p99`, value: search.p99, unit: 'ms' },
    { name: `${name}: searches/s`, value: search.perSecond, unit: '8 connections' },
    { name: `${name}: imported/s`, value: imported, unit: '4 accounts at once' },
  ]
  if (search === base) return found
  const ratios = [...search.classes].map(([of, ms]) => ({ of, ratio: ms / (base.classes.get(of) ?? ms) }))
  const [dearest, ...others] = ratios.toSorted((one, other) => other.ratio - one.ratio)
  say(
    `${name}: of ${ratios.length} classes the dearest beside one server: ${[dearest, ...others.slice(0, 9)].map((each) => `${each?.of} ${each?.ratio.toFixed(1)}`).join(', ')}`,
  )
  return [
    ...found,
    { name: `${name}: search.p50 ÷ one server`, value: search.p50 / base.p50, unit: '' },
    { name: `${name}: class ÷ one server, median`, value: median(ratios.map(({ ratio }) => ratio)), unit: '' },
    { name: `${name}: class ÷ one server, dearest`, value: dearest?.ratio ?? 1, unit: dearest?.of ?? '' },
    { name: `${name}: searches/s ÷ one server`, value: search.perSecond / base.perSecond, unit: '' },
    { name: `${name}: imported/s ÷ one server`, value: imported / baseImport, unit: '' },
  ]
}
