/**
 * Payments, refunds, imports, terms, bridges' words, reorgs, cancellations and expiry of a request, in any order and with kills, on a real chain
 * and the whole service. What the service answers is compared with the model of `standing.ts`.
 */
import type { Knex } from 'knex'
import { formatUnits, type Hex, keccak256, toBytes } from 'viem'
import { createChainDirectory } from '../../../src/chains/chain-directory.ts'
import { createChainReader } from '../../../src/detection/read/chain-reader.ts'
import { createCarriedQueue } from '../../../src/detection/repair/carried-queue.ts'
import type { Account } from '../../../src/domain/account.ts'
import { addressToBytes } from '../../../src/domain/address.ts'
import { importPayments } from '../../../src/imports/import-payments.ts'
import { importLines } from '../../../src/imports/lines/import-lines.ts'
import { createRpcClient } from '../../../src/nodes/rpc-client.ts'
import { createFindTransfer } from '../../../src/routing/providers/lifi/find-transfer.ts'
import { createLifiClient } from '../../../src/routing/providers/lifi/lifi-client.ts'
import { startTestChain, type TestChain } from '../../support/chains/chain.ts'
import { type Caller, type LifeService, type PaymentJson, startLifeService } from '../../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase } from '../../support/data/database.ts'
import { canonical, configOf } from '../../support/detection.ts'
import { silentLogger } from '../../support/logs.ts'
import { type Plan, planOf } from '../soak/seeded-plan.ts'
import { answer, done, NOT_FOUND, type StatusServer, startStatusServer } from '../status-server.ts'
import { type ModelEvent, type ModelImport, type ModelStanding, standingOf } from './standing.ts'

const NEAR_ID = 31_461
const FAR_ID = 31_462
/** Blocks after which one is final; reorgs go less deep. */
const FINALITY = 3
const STEP_SEC = 30
const DAY_MS = 86_400_000

export const kinds = [
  'PAYMENT',
  'REFUND',
  'IMPORT',
  'DETECTION',
  'WORD',
  'REORG',
  'TERMS',
  'CANCELLATION',
  'EXPIRY',
  'KILL',
] as const
export type Kind = (typeof kinds)[number]

/** How often each kind is chosen. `KINDS=PAYMENT,TERMS` leaves the others out, to find a cause. */
const WEIGHTS: Record<Kind, number> = {
  PAYMENT: 26,
  REFUND: 18,
  IMPORT: 14,
  DETECTION: 14,
  WORD: 10,
  REORG: 9,
  TERMS: 13,
  CANCELLATION: 8,
  EXPIRY: 9,
  KILL: 9,
}
const chosen = process.env.KINDS?.split(',')
if (chosen !== undefined) for (const kind of kinds) if (!chosen.includes(kind)) WEIGHTS[kind] = 0

/** What one sequence did, and where the service differed from the model. */
export interface Outcome {
  readonly seed: number
  readonly kinds: ReadonlySet<Kind>
  readonly story: readonly string[]
  /** Undefined where nothing differed. */
  readonly difference: string | undefined
}

/** The chains, the service and the wallets of all sequences. */
export interface Stage {
  play(seed: number): Promise<Outcome>
  stop(): Promise<void>
}

/** Everybody who takes part. The chains have the same accounts. */
interface Cast {
  readonly payee: Hex
  readonly hotWallet: Hex
  readonly payers: readonly Hex[]
  readonly executor: Hex
  readonly stranger: Hex
  readonly refundAddress: Hex
  /** Pays nothing on chain; stands in imported rows. */
  readonly outsider: Hex
}

interface Ground {
  readonly far: TestChain
  readonly near: TestChain
  readonly database: TestDatabase
  readonly server: StatusServer
  readonly cast: Cast
  service: LifeService
}

export async function openStage(): Promise<Stage> {
  const [database, server, near, far] = await Promise.all([
    createTestDatabase({ poolMax: 8 }),
    startStatusServer(),
    startTestChain({ chainId: NEAR_ID }),
    startTestChain({ chainId: FAR_ID, addressSeed: 3, automine: false }),
  ])
  const [payee, hotWallet, one, two, executor, stranger, refundAddress, outsider] =
    far.wallets as readonly Hex[] as Hex[] & [Hex, Hex, Hex, Hex, Hex, Hex, Hex, Hex]
  const cast: Cast = { payee, hotWallet, payers: [one, two], executor, stranger, refundAddress, outsider }
  for (const wallet of [payee, hotWallet, one, two, executor, stranger]) {
    await far.fund(far.tokens.USDC, wallet, 10n ** 15n)
    for (const proxy of [far.contracts.erc20FeeProxy, far.contracts.erc20ConversionProxy]) {
      await far.approve(wallet, far.tokens.USDC, proxy, 10n ** 15n)
    }
  }
  const service = await startLifeService(database.knex, configsOf({ far, near, cast }))
  const ground: Ground = { far, near, database, server, cast, service }
  return {
    play: (seed) => new Sequence(ground, seed).play(),
    async stop() {
      await ground.service.stop()
      await Promise.all([near, far, server].map((each) => each.stop()))
      await database.drop()
    },
  }
}

function configsOf({ far, near, cast }: Pick<Ground, 'far' | 'near' | 'cast'>) {
  const finality = { useFinalizedTag: false, depth: FINALITY }
  return [
    configOf(near, 'ETHEREUM', { finality }),
    configOf(far, 'BASE', { finality, executors: [canonical(cast.executor)] }),
  ]
}

/** A transaction of this sequence. It may be on the chain, waiting, or gone. */
interface Sent {
  readonly hash: Hex
  readonly reference: 'REQUEST' | 'REFUND'
  readonly from: Hex
  readonly to: Hex
  readonly amounts: readonly bigint[]
  readonly isCarried: boolean
  readonly isPayment: boolean
}

/** How a request is paid. A dollar is one USDC, so that what a payment counts for is exact. */
interface Form {
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
  readonly decimals: number
  readonly invoiceDecimals: number
}

const forms = {
  TOKEN: { invoiceCurrency: 'USDC', paymentCurrency: 'USDC', decimals: 6, invoiceDecimals: 6 },
  COIN: { invoiceCurrency: 'ETH', paymentCurrency: 'ETH', decimals: 18, invoiceDecimals: 18 },
  DOLLARS: { invoiceCurrency: 'USD', paymentCurrency: 'USDC', decimals: 6, invoiceDecimals: 8 },
} satisfies Record<string, Form>

interface Line extends Omit<ModelImport, 'gone' | 'status'> {
  status: ModelImport['status']
  updatedAtMs: number
}

const lower = (address: string) => address.toLowerCase()

class Sequence {
  readonly seed: number
  readonly #ground: Ground
  readonly #plan: Plan
  readonly #form: Form
  readonly #unit: bigint
  readonly #requestId: string
  readonly #salt: string
  readonly #hasRefundAddress: boolean
  readonly #expires: boolean
  readonly #refundAddress: Hex
  readonly #sent = new Map<Hex, Sent>()
  readonly #lines = new Map<string, Line>()
  /** Sources and payers that the bridge tells, by the delivery's hash. */
  readonly #reported = new Map<Hex, { source: Hex; payer: Hex }>()
  /** Words that the service has taken. */
  readonly #known = new Map<Hex, Hex>()
  /** Transactions of whose events the service counted one. */
  readonly #counted = new Set<Hex>()
  readonly #kinds = new Set<Kind>()
  readonly #story: string[] = []
  readonly #firstBlock: Promise<number>
  #caller: Caller | undefined
  #account: Account | undefined
  #hasTerms = false
  #isCancelled = false
  #isExpired = false
  #ids = 0
  #times = 0

  constructor(ground: Ground, seed: number) {
    this.seed = seed
    this.#ground = ground
    this.#plan = planOf(seed, 'any order')
    this.#form = forms[this.#plan.weighted({ TOKEN: 60, COIN: 20, DOLLARS: 20 })]
    this.#unit = 10n ** BigInt(this.#form.decimals)
    this.#requestId = `01${keccak256(toBytes(`any order ${seed} ${Date.now()} ${Math.random()}`)).slice(2)}`
    this.#salt = this.#plan.hex(8)
    this.#hasRefundAddress = this.#plan.chance(0.7)
    this.#expires = this.#plan.chance(0.6)
    this.#refundAddress = this.#plan.chance(0.4) ? ground.cast.payers[0]! : ground.cast.refundAddress
    this.#firstBlock = this.#begin()
  }

  async play(): Promise<Outcome> {
    await this.#firstBlock
    let difference: string | undefined
    const steps = this.#plan.between(12, 22)
    for (let step = 0; step < steps && difference === undefined; step++) {
      await this.#takeStep()
      if (this.#hasTerms && this.#plan.chance(0.15)) {
        await this.#sync()
        difference = await this.#compare('between')
      }
    }
    if (!this.#hasTerms) await this.#storeTerms()
    for (const blocks of [1, FINALITY + 1]) {
      if (difference !== undefined) break
      await this.#mine(blocks)
      await this.#sync()
      difference = await this.#compare(blocks === 1 ? 'before the end' : 'at the end')
    }
    await this.#mine(FINALITY + 1)
    return { seed: this.seed, kinds: this.#kinds, story: this.#story, difference }
  }

  async #begin(): Promise<number> {
    const { service, cast, database, far } = this.#ground
    this.#caller = await service.caller(`any order ${this.#requestId.slice(2, 18)}`)
    const account = await database.knex('accounts').where({ id: this.#caller.accountId }).first<Account>('id', 'name')
    this.#account = account
    await database.knex('refund_wallets').insert({
      account_id: this.#caller.accountId,
      address: addressToBytes(canonical(cast.hotWallet)),
      registration: 1,
      registered_at: new Date(0),
    })
    if (this.#form === forms.DOLLARS) await far.setFeed(far.tokens.USDC.feed, { answer: 10n ** 8n })
    return Number((await far.client.head()).number)
  }

  #tell(kind: Kind, words: string): void {
    this.#kinds.add(kind)
    this.#story.push(`${kind.toLowerCase()}: ${words}`)
  }

  async #takeStep(): Promise<void> {
    const kind = this.#plan.weighted(WEIGHTS)
    switch (kind) {
      case 'PAYMENT':
        return this.#pay()
      case 'REFUND':
        return this.#refund()
      case 'IMPORT':
        return this.#import()
      case 'DETECTION':
        this.#tell('DETECTION', 'the chain is read')
        return this.#sync()
      case 'WORD':
        return this.#word()
      case 'REORG':
        return this.#reorg()
      case 'TERMS':
        return this.#storeTerms()
      case 'CANCELLATION':
        return this.#cancel()
      case 'EXPIRY':
        return this.#expire()
      case 'KILL':
        return this.#kill()
    }
  }

  get #reference(): Hex {
    return `0x${keccak256(toBytes((this.#requestId + this.#salt + this.#ground.cast.payee).toLowerCase())).slice(-16)}`
  }

  get #refundReference(): Hex {
    return `0x${keccak256(toBytes((this.#requestId + this.#salt + this.#refundAddress).toLowerCase())).slice(-16)}`
  }

  async #send(sent: Omit<Sent, 'hash'>): Promise<Hex> {
    const { far } = this.#ground
    const paymentReference = sent.reference === 'REQUEST' ? this.#reference : this.#refundReference
    const token = far.tokens.USDC.address
    const payments = sent.amounts.map((amount) => {
      const terms = { to: sent.to, amount, paymentReference }
      if (this.#form === forms.COIN) return { kind: 'NATIVE', ...terms } as const
      if (this.#form === forms.TOKEN || !sent.isPayment) return { kind: 'ERC20', token, ...terms } as const
      return { kind: 'ERC20_CONVERSION', token, ...terms, amount: this.#worthOf(amount) } as const
    })
    const [first] = payments
    const { transactionHash: hash } =
      payments.length === 1 && first !== undefined
        ? await far.pay(sent.from, first)
        : await far.payInOneTransaction(this.#ground.cast.stranger, payments)
    this.#sent.set(hash, { ...sent, hash })
    if (this.#plan.chance(0.6)) await this.#mine(this.#plan.chance(0.2) ? 2 : 1)
    return hash
  }

  #pay(): Promise<void> {
    const isToken = this.#form === forms.TOKEN
    const who = this.#plan.weighted({ payer: 60, executor: isToken ? 26 : 0, payee: 7, batch: isToken ? 9 : 0 })
    return this.#payFrom(who)
  }

  async #payFrom(who: 'payer' | 'executor' | 'payee' | 'batch'): Promise<void> {
    const { cast, far } = this.#ground
    const count = who === 'batch' ? 2 : 1
    const amounts = Array.from({ length: count }, () => BigInt(this.#plan.between(1, 7)) * this.#unit)
    const from = {
      payer: this.#plan.pick(cast.payers),
      executor: cast.executor,
      payee: cast.payee,
      batch: far.contracts.paymentBatch,
    }[who]
    const isCarried = who === 'executor'
    const hash = await this.#send({ reference: 'REQUEST', from, to: cast.payee, amounts, isCarried, isPayment: true })
    const stated = amounts.map((each) => each / this.#unit).join(' and ')
    this.#tell('PAYMENT', `${who} ${from.slice(0, 6)} pays ${stated}, ${hash.slice(0, 8)}`)
  }

  async #refund(): Promise<void> {
    const { cast } = this.#ground
    const from = this.#plan.weighted({ payee: 60, hotWallet: 30, stranger: 10 })
    const underRefund = this.#hasRefundAddress && this.#plan.chance(0.4)
    const to =
      underRefund && this.#plan.chance(0.9)
        ? this.#refundAddress
        : this.#plan.pick([...cast.payers, cast.payers[0]!, cast.stranger])
    const amount = BigInt(this.#plan.between(1, 6)) * this.#unit
    const terms = { from: cast[from], to, amounts: [amount], isCarried: false, isPayment: false }
    const hash = await this.#send({ reference: underRefund ? 'REFUND' : 'REQUEST', ...terms })
    const where = underRefund ? 'under the refund reference' : 'under the request’s reference'
    this.#tell('REFUND', `${from} returns ${amount / this.#unit} to ${to.slice(0, 6)} ${where}, ${hash.slice(0, 8)}`)
  }

  async #import(): Promise<void> {
    const lines = [...this.#lines.values()]
    if (lines.length > 0 && this.#plan.chance(0.25)) {
      const line = this.#plan.pick(lines)
      line.status = this.#plan.pick(['CONFIRMED', 'FAILED'] as const)
      line.updatedAtMs += 1_000
      this.#tell('IMPORT', `the row ${line.id.slice(-4)} again, ${line.status}`)
      return this.#importLine(line)
    }
    const line = await this.#newLine()
    this.#lines.set(line.id, line)
    const what = `${line.amount / this.#unit} ${line.status}${line.payer === lower(this.#ground.cast.payee) ? ' from the payee' : ''}`
    const of =
      line.txHash === undefined ? 'without a transaction' : `of ${line.txHash.slice(0, 8)} ${line.eventIndex ?? ''}`
    this.#tell('IMPORT', `the row ${line.id.slice(-4)}, ${what} ${of}`)
    await this.#importLine(line)
  }

  async #newLine(): Promise<Line> {
    const { cast } = this.#ground
    const standing = new Set([...(await this.#canonical()).keys(), ...(await this.#waiting())])
    const payments = [...this.#sent.values()].filter(
      ({ hash, reference, to }) =>
        reference === 'REQUEST' &&
        to === cast.payee &&
        standing.has(hash) &&
        this.#reported.get(hash)?.payer !== cast.payee,
    )
    const what = this.#plan.weighted({ event: payments.length > 0 ? 60 : 0, foreign: 30, nothing: 10 })
    const amount = BigInt(this.#plan.between(1, 7)) * this.#unit
    const about = what === 'event' ? this.#plan.pick(payments) : undefined
    return {
      id: `0b7d2a31-6f0e-4c55-9d3b-${this.#requestId.slice(4, 12)}${(this.#ids++).toString().padStart(4, '0')}`,
      timeSec: await this.#freeTime(),
      txHash: about?.hash ?? (what === 'foreign' ? `0x${this.#plan.hex(32)}` : undefined),
      eventIndex:
        about !== undefined && this.#plan.chance(0.25) ? this.#plan.between(0, about.amounts.length - 1) : undefined,
      amount,
      worth: this.#worthOf(amount),
      payer: lower(this.#plan.chance(0.1) ? cast.payee : cast.outsider),
      status: this.#plan.weighted({ CONFIRMED: 75, PENDING: 10, FAILED: 15 }),
      updatedAtMs: Date.now() - DAY_MS,
    }
  }

  /** A second of this sequence that neither a block nor another row has. */
  async #freeTime(): Promise<number> {
    const { timestampSec } = await this.#ground.far.client.head()
    const now = Math.floor(timestampSec / STEP_SEC) * STEP_SEC
    const back = this.#plan.between(0, 3) * STEP_SEC
    return now - back + 10 + (this.#times++ % 20)
  }

  async #importLine(line: Line): Promise<void> {
    const { cast, database } = this.#ground
    const { paymentCurrency, invoiceCurrency } = this.#form
    const named = this.#plan.pick(['requestId', 'paymentReference', 'both'] as const)
    const row = {
      id: line.id,
      timestamp: new Date(line.timeSec * 1_000).toISOString(),
      updatedAt: new Date(line.updatedAtMs).toISOString(),
      amount: this.#text(line.amount),
      currency: `${paymentCurrency}-BASE`,
      ...(this.#form === forms.DOLLARS && { invoiceAmount: this.#text(line.amount), invoiceCurrency }),
      network: 'BASE',
      status: line.status,
      payee: cast.payee,
      payer: line.payer,
      ...(line.txHash && { txHash: line.txHash }),
      ...(line.eventIndex !== undefined && { eventIndex: line.eventIndex }),
      ...(named !== 'paymentReference' && { requestId: this.#requestId }),
      ...(named !== 'requestId' && { paymentReference: this.#reference }),
    }
    await importLines(
      (async function* () {
        yield Buffer.from(`${JSON.stringify(row)}\n`)
      })(),
      importPayments(database.knex, this.#account as Account),
    )
  }

  /** A bridge says where a delivery came from: from a payer, or from the payee. */
  async #word(): Promise<void> {
    if (this.#form !== forms.TOKEN) return
    const { near, cast } = this.#ground
    const unlisted = async () => {
      const onChain = await this.#canonical()
      return [...this.#sent.values()].filter(
        ({ hash, isCarried }) => isCarried && onChain.has(hash) && !this.#reported.has(hash),
      )
    }
    if ((await unlisted()).length === 0) {
      await this.#payFrom('executor')
      await this.#mine(1)
    }
    const { hash } = this.#plan.pick(await unlisted())
    const imported = new Set([...this.#lines.values()].map(({ txHash }) => txHash))
    const payer = !imported.has(hash) && this.#plan.chance(0.25) ? cast.payee : this.#plan.pick(cast.payers)
    const { transactionHash: source } = await near.send(payer, { to: cast.outsider, data: '0x', value: 1n } as never)
    await near.mine({ blocks: FINALITY + 1 })
    this.#reported.set(hash, { source, payer })
    this.#tell('WORD', `${hash.slice(0, 8)} came from ${payer === cast.payee ? 'the payee' : payer.slice(0, 6)}`)
    await this.#sync()
  }

  async #reorg(): Promise<void> {
    const { far } = this.#ground
    if ((await this.#waiting()).size > 0) await this.#mine(1)
    const head = Number((await far.client.head()).number)
    const depth = Math.min(this.#plan.between(1, FINALITY - 1), head - (await this.#firstBlock) - 1)
    if (depth < 1) return
    const block = await far.client.rpc.call<{ transactions: Hex[] }>('eth_getBlockByNumber', [
      `0x${head.toString(16)}`,
      false,
    ])
    // Whatever is kept comes first of its sender, or it would wait for a transaction that is gone.
    const kept = depth === 1 ? block.transactions.slice(0, this.#plan.between(0, block.transactions.length)) : []
    const before = await this.#canonical()
    await far.reorg(
      depth,
      kept.map((hash) => ({ hash })),
    )
    const after = await this.#canonical()
    const gone = [...before.keys()].filter((hash) => !after.has(hash))
    this.#tell('REORG', `${depth} blocks; gone ${gone.map((hash) => hash.slice(0, 8)).join(' ') || 'nothing'}`)
  }

  async #storeTerms(): Promise<void> {
    if (this.#hasTerms) return
    const { cast } = this.#ground
    const { service } = this.#ground
    const terms = {
      requestId: this.#requestId,
      salt: this.#salt,
      payee: cast.payee,
      amount: this.#text(10n * this.#unit),
      paymentCurrency: this.#form.paymentCurrency,
      invoiceCurrency: this.#form.invoiceCurrency,
      network: 'BASE',
      ...(this.#hasRefundAddress && { refundAddress: this.#refundAddress }),
      ...(this.#expires && { expiresAt: new Date(service.now().getTime() + 7 * DAY_MS).toISOString() }),
    }
    const { status, body } = await (this.#caller as Caller).call('POST', '/v1/request', { body: terms })
    if (status !== 200) throw new Error(`the request was not stored: ${status} ${JSON.stringify(body)}`)
    this.#hasTerms = true
    this.#tell(
      'TERMS',
      this.#hasRefundAddress ? `with refund address ${this.#refundAddress.slice(0, 6)}` : 'without refund address',
    )
  }

  async #cancel(): Promise<void> {
    if (!this.#hasTerms || this.#isCancelled) return
    const path = `/v1/request/${this.#reference}:cancel`
    const { status, body } = await (this.#caller as Caller).call('POST', path, { body: {} })
    if (status !== 200) {
      // One that is paid cannot be cancelled.
      this.#story.push(`cancellation refused: ${JSON.stringify(body).slice(0, 120)}`)
      return
    }
    this.#isCancelled = true
    this.#tell('CANCELLATION', 'of the request')
  }

  async #expire(): Promise<void> {
    if (!this.#hasTerms || !this.#expires || this.#isExpired) return
    this.#ground.service.passTime(8 * DAY_MS)
    this.#isExpired = true
    this.#tell('EXPIRY', 'its time passes')
  }

  /** All connections of the process are cut while it reads, imports or stores; another process goes on. */
  async #kill(): Promise<void> {
    const { database } = this.#ground
    const lines = [...this.#lines.values()]
    const line = lines.length > 0 && this.#plan.chance(0.4) ? this.#plan.pick(lines) : undefined
    this.#tell(
      'KILL',
      line === undefined ? 'while the chain is read' : `while the row ${line.id.slice(-4)} is imported`,
    )
    const delayMs = this.#plan.between(0, 25)
    const dying = (line === undefined ? this.#scan() : this.#importLine(line)).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    await cutConnections(database.knex)
    await dying
    await this.#restart()
    if (line !== undefined) await this.#importLine(line)
    await this.#sync()
  }

  async #restart(): Promise<void> {
    const { database, far, near, cast, service } = this.#ground
    const aheadMs = service.now().getTime() - Date.now()
    await service.abandon()
    await database.knex('leases').delete()
    this.#ground.service = await startLifeService(database.knex, configsOf({ far, near, cast }))
    this.#ground.service.passTime(aheadMs)
    const caller = await this.#ground.service.caller((this.#account as Account).name)
    this.#caller = caller
  }

  async #mine(blocks: number): Promise<void> {
    const { far } = this.#ground
    for (let mined = 0; mined < blocks; mined++) {
      const { timestampSec } = await far.client.head()
      const next = (Math.floor(timestampSec / STEP_SEC) + 1) * STEP_SEC
      await far.mine({ timestampSec: next })
    }
  }

  #scan(): Promise<void> {
    return this.#ground.service.scan()
  }

  /** Reads the chain to its head, takes the words that are known by then, and reads what they change. */
  async #sync(): Promise<void> {
    await this.#scan()
    if (this.#form === forms.TOKEN) {
      await this.#drainWords()
      await this.#scan()
    }
    if (!this.#hasTerms) return
    const onChain = await this.#canonical()
    for (const [hash, { payer }] of this.#reported) if (onChain.has(hash)) this.#known.set(hash, payer)
    for (const hash of onChain.keys()) if (this.#isCountedPayment(hash)) this.#counted.add(hash)
  }

  #isCountedPayment(hash: Hex): boolean {
    const { cast } = this.#ground
    const sent = this.#sent.get(hash)
    if (sent === undefined || sent.reference !== 'REQUEST' || sent.to !== cast.payee) return false
    return sent.from !== cast.payee
  }

  async #drainWords(): Promise<void> {
    const { server, database, far, near, cast } = this.#ground
    server.behave((hash, response) => {
      const reported = this.#reported.get(hash as Hex)
      if (reported === undefined) return answer(response, 404, NOT_FOUND)
      const sending = { chainId: NEAR_ID, txHash: reported.source }
      const receiving = { chainId: FAR_ID, txHash: hash }
      return answer(response, 200, done({ sending, receiving, fromAddress: reported.payer }))
    })
    const configs = configsOf({ far, near, cast })
    // Whatever waits is due.
    await database.knex('carried_payments').update({ due_at: new Date(0), attempts: 0 })
    const client = createLifiClient({ url: server.url, fetch, clock: Date.now, logger: silentLogger })
    const readers = configs.map(({ name, chainId, rpcUrls: urls }) => {
      const rpc = createRpcClient({ urls, chainId, clock: () => new Date() })
      return [name, createChainReader(rpc, [])] as const
    })
    await createCarriedQueue({
      knex: database.knex,
      owner: `any order ${this.seed}`,
      chains: createChainDirectory(configs),
      findSource: createFindTransfer(client, silentLogger),
      readers: new Map(readers),
      logger: silentLogger,
      clock: () => new Date(),
    }).drain()
  }

  /** The transactions of this sequence that the node will mine. */
  async #waiting(): Promise<Set<Hex>> {
    const { rpc } = this.#ground.far.client
    const waiting = new Set<Hex>()
    for (const hash of this.#sent.keys()) {
      const found = await rpc.call<{ blockNumber: Hex | null } | null>('eth_getTransactionByHash', [hash])
      if (found !== null && found.blockNumber === null) waiting.add(hash)
    }
    return waiting
  }

  /** The transactions of this sequence that are on the chain. */
  async #canonical(): Promise<Map<Hex, Receipt>> {
    const { rpc } = this.#ground.far.client
    const found = new Map<Hex, Receipt>()
    for (const hash of this.#sent.keys()) {
      const receipt = await rpc.call<Receipt | null>('eth_getTransactionReceipt', [hash]).catch(() => null)
      if (receipt !== null) found.set(hash, receipt)
    }
    return found
  }

  async #events(): Promise<ModelEvent[]> {
    const { far } = this.#ground
    const { rpc } = far.client
    const head = Number((await far.client.head()).number)
    const { erc20FeeProxy, ethereumFeeProxy, erc20ConversionProxy } = far.contracts
    const proxies = [erc20FeeProxy, ethereumFeeProxy, erc20ConversionProxy].map(lower)
    const events: ModelEvent[] = []
    for (const [hash, receipt] of await this.#canonical()) {
      const sent = this.#sent.get(hash) as Sent
      const block = await rpc.call<{ timestamp: Hex }>('eth_getBlockByNumber', [receipt.blockNumber, false])
      const logs = receipt.logs.filter((log) => proxies.includes(lower(log.address)) && !isConversion(log))
      for (const [eventIndex, log] of logs.entries()) {
        events.push({
          place: {
            timeSec: Number(block.timestamp),
            block: Number(receipt.blockNumber),
            transaction: Number(receipt.transactionIndex),
            log: Number(log.logIndex),
          },
          txHash: hash,
          eventIndex,
          reference: sent.reference,
          from: lower(sent.from),
          to: lower(sent.to),
          amount: sent.amounts[eventIndex] ?? 0n,
          worth: this.#worthOf(sent.amounts[eventIndex] ?? 0n),
          payer: sent.isCarried ? mapped(this.#known.get(hash)) : lower(sent.from),
          final: Number(receipt.blockNumber) <= head - FINALITY,
        })
      }
    }
    return events
  }

  async #expected(): Promise<ModelStanding> {
    const { cast } = this.#ground
    const onChain = await this.#canonical()
    const request = {
      amount: this.#worthOf(10n * this.#unit),
      payee: lower(cast.payee),
      refundAddress: this.#hasRefundAddress ? lower(this.#refundAddress) : undefined,
      wallets: new Set([lower(cast.hotWallet)]),
      cancelled: this.#isCancelled,
      expired: this.#isExpired,
    }
    const imports = [...this.#lines.values()].map((line) => {
      const hash = line.txHash as Hex | undefined
      return { ...line, gone: hash !== undefined && this.#counted.has(hash) && !onChain.has(hash) }
    })
    return standingOf(request, await this.#events(), imports)
  }

  /** @returns what differs; undefined for nothing */
  async #compare(when: string): Promise<string | undefined> {
    const expected = await this.#expected()
    const caller = this.#caller as Caller
    const found = await caller.request(this.#reference)
    const { payments } = await caller.search({ requestId: this.#requestId, limit: '100' })
    const counting = new Set(expected.payments.map(({ key }) => key))
    const keyOf = ({ id, txHash, eventIndex }: PaymentJson) => (counting.has(id) ? id : `${txHash} ${eventIndex}`)
    // Imported rows that count nothing may be shown.
    const mustCount = (payment: PaymentJson) => counting.has(keyOf(payment)) || !this.#lines.has(payment.id)
    const shown = payments
      .filter((payment) => (payment as { superseded?: boolean }).superseded !== true && mustCount(payment))
      .map((payment) => ({
        key: keyOf(payment),
        amount: payment.amount,
        status: payment.status,
        refunds: payment.refunds.map((each) => {
          const entry = each as typeof each & { eventIndex: number; excess?: boolean }
          return {
            txHash: entry.txHash,
            eventIndex: entry.eventIndex,
            amount: entry.amount,
            excess: entry.excess === true,
          }
        }),
      }))
    const seen = {
      status: found.status,
      paid: found.paidAmount,
      pending: found.pendingAmount,
      outstanding: found.outstandingAmount,
      overpaid: found.overpaidAmount,
      payments: shown.toSorted(byKey),
    }
    const inInvoice = (units: bigint) => formatUnits(units, this.#form.invoiceDecimals)
    const model = {
      status: expected.status,
      paid: inInvoice(expected.paid),
      pending: inInvoice(expected.pending),
      outstanding: inInvoice(expected.outstanding),
      overpaid: inInvoice(expected.overpaid),
      payments: expected.payments
        .map(({ key, amount, status, refunds }) => ({
          key,
          amount: this.#text(amount),
          status,
          refunds: refunds.map((entry) => ({ ...entry, amount: this.#text(entry.amount) })),
        }))
        .toSorted(byKey),
    }
    if (JSON.stringify(seen) === JSON.stringify(model)) return undefined
    return `${when}\nmodel   ${JSON.stringify(model, null, 1)}\nservice ${JSON.stringify(seen, null, 1)}`
  }

  #text(amount: bigint): string {
    return formatUnits(amount, this.#form.decimals)
  }

  /** What an amount counts for, in base units of the invoice currency. */
  #worthOf(amount: bigint): bigint {
    return amount * 10n ** BigInt(this.#form.invoiceDecimals - this.#form.decimals)
  }
}

interface Receipt {
  readonly blockNumber: Hex
  readonly transactionIndex: Hex
  readonly logs: readonly Log[]
}

interface Log {
  readonly address: Hex
  readonly logIndex: Hex
  readonly topics: readonly Hex[]
}

/** A conversion proxy logs a conversion beside the payment itself. */
const CONVERSION = keccak256(toBytes('TransferWithConversionAndReference(uint256,address,bytes,uint256,uint256)'))
const isConversion = ({ topics }: Log) => topics[0] === CONVERSION

const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
const mapped = (address: string | undefined) => (address === undefined ? undefined : lower(address))

async function cutConnections(knex: Knex): Promise<void> {
  await knex
    .raw(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    .catch(() => {})
}
