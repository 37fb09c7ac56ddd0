import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { migrateCommand } from './commands/migrate-command.ts'
import { drawPlan } from './migration-plan.ts'
import { tellMigration } from './report-migration.ts'
import { runCommandLine } from './run-command-line.ts'

it('draws each lock in a line, and what the times are estimated from', () => {
  const samples = [
    { table: 'payments', bytes: 640_000_000, rows: 1_800_000, sampledRows: 51_234, sampleMs: 40.6, seconds: 9 },
  ]
  const steps = [
    { step: '0017-new-table', contract: false, locks: [], indexes: [], seconds: 0 },
    {
      step: '0018-index',
      contract: false,
      locks: [{ table: 'payments', mode: 'SHARE UPDATE EXCLUSIVE', stops: 'nothing' }],
      indexes: ['payments_block'],
      seconds: 35.5,
    },
    {
      step: '0019-drop',
      contract: true,
      locks: [{ table: 'requests', mode: 'ACCESS EXCLUSIVE', stops: 'reads and writes' }],
      indexes: [],
      seconds: 0,
    },
  ] as const
  expect(drawPlan({ steps, samples })).toEqual([
    'MIGRATION                    TABLE     LOCK                    STOPS             FOR',
    '0017-new-table               -         -                       nothing           milliseconds',
    '0018-index                   payments  SHARE UPDATE EXCLUSIVE  nothing           about 36 s',
    '0019-drop (with --contract)  requests  ACCESS EXCLUSIVE        reads and writes  milliseconds',
    '',
    'A migration waits for a lock for 1 s at most; then it lets others pass and tries again.',
    'payments: about 1,800,000 rows, 611 MB; the time is estimated from 51,234 of them, which were read and sorted in 41 ms.',
  ])
  expect(drawPlan({ steps: [], samples: [] })).toEqual(['the schema is up to date'])
})

it.each<[string[], string]>([
  [['--json'], '--json goes with --plan only'],
  [['--plan', '--contract'], '--contract does not go with --plan'],
  [['--plan=yes'], "'--plan' does not take an argument"],
  [['--plans'], 'did you mean "--plan"'],
  [['now'], '"now" is not expected here'],
])('migrate %j is refused', async (words, says) => {
  const stderr = new PassThrough()
  const context = {
    environment: {},
    workingFolder: '/nowhere',
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr,
    actor: 'test',
    signal: new AbortController().signal,
  }
  expect(await runCommandLine([migrateCommand], ['migrate', ...words], context)).toBe(2)
  stderr.end()
  expect(await text(stderr)).toContain(says)
})

it('tells the building of an index in one changing line of a terminal, elsewhere in a line every ten seconds', () => {
  const event = {
    kind: 'BUILDING',
    step: '0018',
    index: 'i',
    phase: 'building index',
    done: 0.256,
    seconds: 3,
  } as const
  const told = (isTTY: boolean) => {
    const written: string[] = []
    let nowMs = 0
    const stderr = { isTTY, write: (line: string) => written.push(line) }
    const report = tellMigration(stderr as unknown as PassThrough, () => nowMs)
    for (; nowMs <= 20_000; nowMs += 5_000) report(event)
    report({ kind: 'RAN', step: '0018', ms: 1 })
    return written
  }
  const line = '0018: index i, building index 25 %, 3 s'
  expect(told(true)).toEqual([...Array.from({ length: 5 }, () => `\r\x1b[K${line}`), '\r\x1b[K'])
  expect(told(false).filter((each) => each !== '')).toEqual([`${line}\n`, `${line}\n`])
})
