import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/knex.ts'
import { type ExportingService, startExporting } from './exported.ts'

/** The clock of the process: two hours late. */
const late = `const Real = Date
globalThis.Date = class extends Real {
  constructor(...given) { given.length === 0 ? super(Real.now() - 7200000) : super(...given) }
  static now() { return Real.now() - 7200000 }
}`

let running: ExportingService

beforeAll(async () => {
  const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(late)}`
  running = await startExporting({ NODE_OPTIONS, MAX_CONNECTIONS: '9999999' })
})
afterAll(() => running?.stop())

const search = () => fetch(`${running.url}/payments`, { headers: { 'x-api-key': running.key } })

it('refuses a key that has expired by the clock of the database', async () => {
  const database = createDatabase(running.databaseUrl)
  try {
    // Found by no cache: the key is used for the first time after that.
    await database('api_keys').update({ expires_at: database.raw(`now() - interval '1 hour'`) })
    expect((await search()).status).toBe(401)
    await database('api_keys').update({ expires_at: null })
    // A process may go by what it read for five seconds.
    await expect.poll(async () => (await search()).status).toBe(200)
  } finally {
    await database.destroy()
  }
})

it('warns of the offset, measures it, and shows it to who asks whether it is ready', async () => {
  const { status, body } = await fetch(`${running.url}/readyz`).then(async (answer) => ({
    status: answer.status,
    body: (await answer.json()) as { status: string; clockOffsetSeconds: number },
  }))
  expect([status, body]).toEqual([200, { status: 'ok', clockOffsetSeconds: expect.closeTo(7_200, -1) }])
  const metrics = await (await fetch(running.metricsUrl)).text()
  expect(Number(/^waybill_clock_offset_seconds (\S+)$/m.exec(metrics)?.[1])).toBeCloseTo(7_200, -1)
  expect(running.log().filter(({ msg }) => String(msg).startsWith("the machine's clock differs"))).toMatchObject([
    { level: 'warn', offsetSeconds: expect.closeTo(7_200, -1) },
  ])
})

it('measures lags by it as well', async () => {
  const lag = async () => {
    const metrics = await (await fetch(running.metricsUrl)).text()
    return Number(/^waybill_chain_lag_seconds\{chain="BASE"\} (\S+)$/m.exec(metrics)?.[1] ?? 'NaN')
  }
  const { timestampSec } = await running.chain.client.head()
  await expect.poll(lag).toBeGreaterThanOrEqual(0)
  expect(await lag()).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1_000 - timestampSec) - 5)
})

it('warns at the start of fewer descriptors than its connections need', () => {
  expect(running.log()).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      limit: expect.any(Number),
      needed: 9_999_999 + 8 + 256,
      msg: expect.stringMatching(/^fewer files may be open/),
    }),
  )
})
