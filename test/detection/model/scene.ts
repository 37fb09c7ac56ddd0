/**
 * A chain on which payments of all kinds, refunds, spoofs and mistakes were mined, and the requests that they are about. What a service finds on it is
 * compared with what the model reads from the chain.
 */
import type { Knex } from 'knex'
import type { Hex } from 'viem'
import type { composeService } from '../../../src/app.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { startLifeService } from '../../support/chains/payment-life.ts'
import { setUpMoney } from '../soak/acts.ts'
import { readBalance, readPayments, shows } from '../soak/answers.ts'
import { ACCOUNTS, type AccountName, castOf, type Invoice } from '../soak/invoices.ts'
import { createPayerActor } from '../soak/payer-actor.ts'
import { planOf } from '../soak/seeded-plan.ts'
import { type SoakChain, startSoakChain } from '../soak/soak-chain.ts'
import { readUnmatched } from '../soak/stored-events.ts'
import { COIN, expectState, type PlacedFact } from './expected-state.ts'
import { factsAbout, type ModelChain, type ModelFact, readFacts } from './read-facts.ts'

export interface Scene {
  readonly chain: SoakChain
  readonly invoices: readonly Invoice[]
  /** What each transaction did, as its sender meant it. */
  readonly meant: readonly PlacedFact[]
  /** The same as the model reads it from the chain. */
  readonly facts: readonly PlacedFact[]
  /** Has a service find everything on an empty database. @returns what is not as the model says */
  compare(knex: Knex, compose: typeof composeService): Promise<string[]>
  stop(): Promise<void>
}

const SPEC = { network: 'BASE', chainId: 31_580, blockMs: 1_000, depth: 4, hasFinalizedTag: false } as const
const ACTS_A_BLOCK = 4
/** A payment is stored late within so long. */
const LATE_MS = 5_500

/** @param acts - how many times the actor decides */
export async function playScene(seed: number, acts: number, folder: string): Promise<Scene> {
  const chain = await startSoakChain(SPEC, folder)
  for (const { from, call } of setUpMoney(chain)) await chain.client.send(from, call, { gas: 8_000_000n })
  await chain.mine()
  const stored: { readonly account: AccountName; readonly terms: object }[] = []
  const store = async (account: AccountName, terms: object) => void stored.push({ account, terms })
  const plan = planOf(seed, 'scene')
  const actor = createPayerActor({ chain, others: [], plan, store, onLate: () => {} })
  const model = describe(chain)
  const read: ModelFact[] = []
  // While the node still traces its blocks.
  const mine = async () => {
    const from = chain.story.head() + 1
    await chain.mine()
    read.push(...(await readFacts(model, { from, to: chain.story.head() })))
  }
  for (let act = 0; act < acts; act++) {
    await actor.act()
    if (act % ACTS_A_BLOCK === 0) await mine()
  }
  await new Promise((resolve) => setTimeout(resolve, LATE_MS))
  // The last blocks are not final.
  await mine()
  const { invoices } = actor
  const references = new Map<Hex, Hex>(
    invoices.flatMap(({ reference, refundReference }) => [
      [reference, reference],
      [refundReference, reference],
    ]),
  )
  const facts = factsAbout(read, references)
  return {
    chain,
    invoices,
    meant: invoices.flatMap(({ reference }) => chain.story.factsOf(reference)),
    facts,
    compare: (knex, compose) => compare({ chain, invoices, facts, stored }, knex, compose),
    stop: () => chain.stop(),
  }
}

/** The chain as the model takes it. */
function describe(chain: SoakChain): ModelChain {
  const config = chain.config([chain.rpcUrl])
  const ofKind = (...kinds: string[]) =>
    new Set(config.contracts.filter(({ kind }) => kinds.includes(kind)).map(({ address }) => address.toLowerCase()))
  const swaps = ofKind('ERC20_SWAP_TO_PAY')
  return {
    network: config.name,
    rpc: (method, params) => chain.client.rpc.call(method, params),
    proxies: ofKind('ERC20_FEE_PROXY', 'ETHEREUM_FEE_PROXY', 'ERC20_CONVERSION_PROXY', 'ETH_CONVERSION_PROXY'),
    factories: ofKind('SINGLE_REQUEST_PROXY_FACTORY'),
    swaps,
    intermediaries: new Set((config.intermediaries ?? []).map((address) => address.toLowerCase())),
    executors: new Set((config.executors ?? []).map((address) => address.toLowerCase())),
    tokens: new Set(config.tokens.map(({ address }) => address.toLowerCase())),
    paths: pathsOf(config, chain),
  }
}

function pathsOf({ conversion, tokens }: ChainConfig, { deployed }: SoakChain): ModelChain['paths'] {
  return (conversion?.paths ?? [])
    .filter(({ from, via }) => from === 'USD' && via.length === 0)
    .map(({ token: symbol, heartbeatSeconds }) => {
      const address = tokens.find((token) => token.symbol === symbol)?.address.toLowerCase()
      const into = (address ?? deployed.native.conversionHash) as Hex
      return {
        token: address ?? COIN,
        contract: conversion?.path as unknown as Hex,
        addresses: [USD, into],
        heartbeatSec: heartbeatSeconds,
      }
    })
}

/** What stands for US dollars in paths. @see CHAIN, "Events followed" */
const USD = '0x775eb53d00dd0acd3ec1696472105d579b9b386b' as Hex

interface Played {
  readonly chain: SoakChain
  readonly invoices: readonly Invoice[]
  readonly facts: readonly PlacedFact[]
  readonly stored: readonly { readonly account: AccountName; readonly terms: object }[]
}

async function compare(
  { chain, invoices, facts, stored }: Played,
  knex: Knex,
  compose: typeof composeService,
): Promise<string[]> {
  const service = await startLifeService(knex, [chain.config([chain.rpcUrl])], compose)
  try {
    const callers = new Map<AccountName, Awaited<ReturnType<typeof service.caller>>>()
    for (const account of ACCOUNTS) callers.set(account, await service.caller(account))
    for (const { account, terms } of stored) {
      await callers.get(account)?.call('POST', '/v1/request', { body: terms })
    }
    await registerWallet(knex, callers.get('shop')?.accountId ?? 0, castOf(chain.accounts).hotWallet)
    await service.scan()
    const wrong: string[] = []
    const head = chain.story.head() - SPEC.depth
    const unmatched = await readUnmatched(knex, new Map([[`eip155:${SPEC.chainId}`, SPEC.network]]))
    for (const request of invoices.flatMap(({ requests }) => requests)) {
      const expected = expectState(
        request,
        facts.filter(({ about }) => about === request.reference),
        head,
      )
      const caller = callers.get(request.account as AccountName)
      const payments = await caller?.call('GET', '/payments', {
        query: { paymentReference: request.reference, limit: '100' },
      })
      const balance = await caller?.call('GET', `/v1/request/${request.reference}`)
      for (const seen of [
        readPayments(payments?.body as object, request.network),
        readBalance(balance?.body as object),
      ]) {
        if (!shows({ seen, request }, expected))
          wrong.push(JSON.stringify({ request: request.reference, seen, expected }, writable))
      }
      const topics = unmatched.filter(
        ({ account, event }) => account === request.account && isOf(event, request.reference, facts),
      )
      const found = topics.map(({ event }) => event).toSorted()
      if (found.join() !== expected.unmatched.join()) {
        wrong.push(JSON.stringify({ request: request.reference, unmatched: found, expected: expected.unmatched }))
      }
    }
    return wrong
  } finally {
    await service.abandon()
  }
}

const writable = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)

function isOf(event: string, reference: Hex, facts: readonly PlacedFact[]): boolean {
  return facts.some(
    ({ about, txHash, eventIndex }) => about === reference && event.startsWith(`${txHash} ${eventIndex} `),
  )
}

/** Before the first block, as a merchant would have. */
async function registerWallet(knex: Knex, accountId: number, address: string): Promise<void> {
  await knex('refund_wallets').insert({
    account_id: accountId,
    address: Buffer.from(`01${address.slice(2).toLowerCase()}`, 'hex'),
    registration: 1,
    registered_at: new Date(0),
  })
}
