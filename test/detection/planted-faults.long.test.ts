/** The model against detection: no difference on a chain of all kinds of payments, and each of the faults planted in detection is found. */
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { composeService } from '../../src/app.ts'
import { createTestDatabase } from '../support/data/database.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { playScene, type Scene } from './model/scene.ts'

const SEED = Number(process.env['SEED'] ?? 4)
const ACTS = 320

let folder: string
let scene: Scene
beforeAll(async () => {
  folder = await makeTempFolder('planted-faults')
  scene = await playScene(SEED, ACTS, folder)
}, 300_000)
afterAll(async () => {
  await scene?.stop()
  await rm(folder, { recursive: true, force: true })
})

async function compareWith(compose: typeof composeService): Promise<string[]> {
  const database = await createTestDatabase()
  try {
    return await scene.compare(database.knex, compose)
  } finally {
    await database.drop()
  }
}

const KINDS =
  'batch, conversion, create-proxy, fake-token, late, native-older, nothing, otherToken, partial, payeePaysHimself, plainForFiat, refund, ' +
  'refund under its own reference, request-proxy, strangersRefund, strangersReturn, swap, taxed, together, toOneself, unlisted, zero-transfer'

it('the scene has acts of all kinds', () => {
  expect([...scene.chain.sent.keys()]).toEqual(expect.arrayContaining(KINDS.split(', ')))
})

it('the model reads from the chain what the senders meant', () => {
  const textsOf = (facts: Scene['facts']) =>
    facts
      .map(({ txHash, eventIndex, to, token, received, paidFrom, isPassedOn, payer, dollars, reference }) =>
        // Where no payment can be, nobody asks for the payer.
        [txHash, eventIndex, reference, to, token, received, payer ?? (isPassedOn || paidFrom), dollars].join(' '),
      )
      .toSorted()
  expect(scene.facts.length).toBeGreaterThan(100)
  expect(textsOf(scene.facts)).toEqual(textsOf(scene.meant))
})

it('detection finds what the model says', async () => {
  expect(await compareWith(composeService)).toEqual([])
})

interface Fault {
  readonly rule: string
  /** Below `src/`. */
  readonly file: string
  readonly right: string
  readonly wrong: string
}

const faults: readonly Fault[] = [
  {
    rule: 'what arrived counts, not what the event says',
    file: 'detection/match/match-event.ts',
    right: 'const amount = event.received',
    wrong: 'const amount = event.amount',
  },
  {
    rule: 'only the payee is paid',
    file: 'detection/match/match-event.ts',
    right: "if (event.to !== request.payee) return unmatched('WRONG_PAYEE')",
    wrong: '',
  },
  {
    rule: 'an event that moved nothing is no payment',
    file: 'detection/match/match-event.ts',
    right: "if (received === 0n) return 'NOTHING_RECEIVED'",
    wrong: '',
  },
  {
    rule: 'nobody pays themselves',
    file: 'detection/match/match-event.ts',
    right: "return paidFrom === to || payer === to ? 'SELF_PAYMENT' : undefined",
    wrong: 'return undefined',
  },
  {
    rule: 'a plain payment never covers an invoice in fiat',
    file: 'detection/match/match-event.ts',
    right: "if (event.conversion === undefined) return unmatched('NOT_A_CONVERSION')",
    wrong:
      'if (event.conversion === undefined) return { ...payment, invoiceAmount: amount, invoiceDecimals: token.decimals }',
  },
  {
    rule: 'a conversion from another currency pays another invoice',
    file: 'detection/match/match-event.ts',
    right: "if (event.conversion !== undefined) return unmatched('WRONG_TOKEN')",
    wrong: '',
  },
  {
    rule: 'a refund is the payee’s money',
    file: 'detection/match/match-event.ts',
    right: 'return paidFrom === payee || context.isWallet(paidFrom)',
    wrong: 'return true',
  },
  {
    rule: 'registered wallets refund too',
    file: 'detection/match/match-event.ts',
    right: 'return paidFrom === payee || context.isWallet(paidFrom)',
    wrong: 'return paidFrom === payee',
  },
  {
    rule: 'who gave an intermediary the money is the payer',
    file: 'detection/match/read-transaction.ts',
    right: 'return followed.intermediaries.has(paidBy.from) ? sources.get(paidBy.position) : paidBy.from',
    wrong: 'return paidBy.from',
  },
  {
    rule: 'a Transfer of 0 names no payer',
    file: 'detection/match/follow-money.ts',
    right: 'if (value === 0n || from === to',
    wrong: 'if (from === to',
  },
  {
    rule: 'the index counts all payment events of the transaction',
    file: 'detection/match/read-transaction.ts',
    right: 'const index = isFeeProxyLog(log) ? eventIndex++ : eventIndex',
    wrong:
      'const index = followed.contracts.has(log.address.toLowerCase() as Address) && isFeeProxyLog(log) ? eventIndex++ : eventIndex',
  },
  {
    rule: 'a SingleRequestProxy pays with what others gave it',
    file: 'detection/find/find-payments.ts',
    right: 'const proxies = findCreatedProxies(logged.logs, followed)',
    wrong: 'const proxies: never[] = []',
  },
  {
    rule: 'a batch is not the payer of its payments in coins',
    file: 'detection/match/native-payers.ts',
    right: 'const isBatch = parent !== undefined && followed.intermediaries.has(caller)',
    wrong: 'const isBatch = false',
  },
  {
    rule: 'a conversion counts at the rate of our own path',
    file: 'detection/match/match-event.ts',
    right: 'const MIN_PERCENT = 98n',
    wrong: 'const MIN_PERCENT = 101n',
  },
  {
    rule: 'a payment becomes final with its block',
    file: 'detection/write/payment-rows.ts',
    right: 'if (row.block_number === null || row.block_number > finalBlock) return row',
    wrong: 'if (row.block_number === null) return row',
  },
]

describe('a fault in detection is found:', () => {
  it.each(faults.map((fault) => [fault.rule, fault] as const))('%s', async (_, fault) => {
    expect(await plant(fault)).not.toEqual([])
  })
})

let planted = 0

/** Puts the service together from a copy of its sources with the fault. */
async function plant({ file, right, wrong }: Fault): Promise<string[]> {
  const root = resolve(import.meta.dirname, '../..')
  const copy = join(root, '.planted', String(planted++))
  await mkdir(copy, { recursive: true })
  try {
    await cp(join(root, 'src'), join(copy, 'src'), { recursive: true })
    for (const beside of ['gen', 'package.json']) await symlink(join(root, beside), join(copy, beside))
    const path = join(copy, 'src', file)
    const source = await readFile(path, 'utf8')
    expect(source.split(right)).toHaveLength(2)
    await writeFile(path, source.replace(right, wrong))
    const faulty = (await import(join(copy, 'src/app.ts'))) as { composeService: typeof composeService }
    return await compareWith(faulty.composeService)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
