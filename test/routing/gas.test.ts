import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { PaymentQuestion, PreparedPayment, PreparedTransaction } from '../../src/domain/route.ts'
import { WaybillError } from '../../src/errors/waybill-error.ts'
import { resultIn } from '../../src/nodes/json-rpc.ts'
import { createRpcNode } from '../../src/nodes/rpc-node.ts'
import { createGasMeter } from '../../src/routing/gas/gas-meter.ts'
import { decodeSlotSearch, encodeSlotSearch, type TokenSlots } from '../../src/routing/gas/token-slots.ts'
import { SCAN_POLICY } from '../../src/routing/scan/scan.ts'
import { startAnvilNode, type TestNode } from '../support/chains/nodes.ts'
import { deployForPayers, type PayersChain, unusedAddress } from '../support/chains/payers-chain.ts'
import { offTheLine, takeRandomQuotes } from '../support/chains/random-quotes.ts'
import { quotedGas } from '../support/chains/take-route.ts'
import {
  canonical,
  createTestRouting,
  type ProxyBehaviour,
  passOn,
  type RpcProxy,
  startRpcProxy,
} from '../support/routing.ts'

const GWEI = 10n ** 9n
const V3 = 'ETHEREUM_ETHEREUM_USDT_USDC_UNISWAP_V3'

let node: TestNode
let chain: PayersChain
let proxy: RpcProxy
beforeAll(async () => {
  node = await startAnvilNode()
  chain = await deployForPayers(node, { fresh: 3 })
  proxy = await startRpcProxy(node.rpc.url)
})
afterAll(async () => {
  await proxy.stop()
  await node.stop()
})
afterEach(() => {
  proxy.behave(passOn)
  proxy.bodies.length = 0
})

let cases = 0
const throughProxy = () => createTestRouting([{ ...chain.config, rpcUrls: [proxy.url] }])

/** A wallet that holds a token, and a request in USDC with a new payee. */
async function arrange(routing = throughProxy(), symbol = 'USDT', amount = '25') {
  const wallet = await chain.newWallet()
  const payee = canonical(unusedAddress(`payee of gas ${cases++}`))
  const token = chain.token(symbol)
  await chain.fund(token, wallet.address, 10n ** BigInt(token.decimals + 4))
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const paymentReference = routing.addRequest({ payee, amount, network: 'ETHEREUM', ...currency })
  return { wallet, payee, question: { paymentReference, wallet: wallet.address } satisfies PaymentQuestion }
}

const limitsOf = ({ transactions }: PreparedPayment) => transactions.map(({ gas }) => gas !== undefined)
const reasonsOf = ({ warnings }: PreparedPayment) => warnings.map(({ reason }) => reason)
interface Call {
  readonly id: number
  readonly method: string
  readonly params: unknown[]
}
/** The calls of a batch, or the only one. */
const callsIn = (body: string) => [JSON.parse(body) as Call | Call[]].flat()
/** The answers in the form of the question. */
const answerTo = (body: string, answers: readonly unknown[]) =>
  JSON.stringify(Array.isArray(JSON.parse(body)) ? answers : answers[0])
const methodsOf = (bodies: readonly string[]) => bodies.map((body) => callsIn(body).map(({ method }) => method))

type Refuse = (call: Call) => { code: number; message: string } | undefined

/** Answers some calls of batches with an error, and lets the node answer the others. */
function refusing(refuse: Refuse, change: (call: Call) => void = () => {}): ProxyBehaviour {
  return async ({ body }, response) => {
    const answers = callsIn(body).map(async (call) => {
      const error = refuse(call)
      if (error !== undefined) return { id: call.id, error }
      change(call)
      const { method, params } = call
      const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
      const asked = JSON.stringify({ jsonrpc: '2.0', id: call.id, method, params })
      return (await fetch(node.rpc.url, { ...init, body: asked })).json() as Promise<unknown>
    })
    response.end(answerTo(body, await Promise.all(answers)))
  }
}

const noSimulation: Refuse = ({ method }) =>
  method === 'eth_simulateV1' ? { code: -32601, message: 'the method eth_simulateV1 does not exist' } : undefined
const noOverrides: Refuse = (call) =>
  call.method === 'eth_estimateGas' && call.params.length > 2
    ? { code: -32602, message: 'too many arguments, want at most 2' }
    : noSimulation(call)

/** Does not simulate, and gives every estimate the same answer. */
function answeringEstimates(result: string): ProxyBehaviour {
  return async (exchange, response) => {
    const calls = callsIn(exchange.body)
    const answers = [JSON.parse(await exchange.next()) as { id: number } | { id: number }[]].flat()
    const reported = answers.map((answer) => {
      const call = calls.find(({ id }) => id === answer.id)
      const error = call && noSimulation(call)
      if (error !== undefined) return { id: answer.id, error }
      return call?.method === 'eth_estimateGas' ? { id: answer.id, result } : answer
    })
    response.end(answerTo(exchange.body, reported))
  }
}

describe('the gas limits of prepared transactions', () => {
  it('suffice for random quotes of all kinds', async () => {
    const busy = await takeRandomQuotes(chain, { count: 7, seed: 3, baseFee: 8n * GWEI })
    const quiet = await takeRandomQuotes(chain, { count: 6, seed: 5 })
    const taken = [...busy, ...quiet]
    expect(offTheLine(taken)).toEqual([])
    expect(taken.flatMap(({ reasons }) => reasons)).toEqual([])
    expect(taken.flatMap(({ shares }) => shares).filter((share) => share === undefined || share > 0.8)).toEqual([])
  })

  it('come from a simulation, in one request beside the look at the chain', async () => {
    const routing = throughProxy()
    const { question } = await arrange(routing)
    await routing.learnNodes(new AbortController().signal)
    proxy.bodies.length = 0
    const prepared = await routing.prepare({ ...question, route: V3 })
    expect(prepared.steps.map(({ kind }) => kind)).toEqual(['APPROVE', 'SWAP', 'APPROVE', 'PAY'])
    expect([limitsOf(prepared), reasonsOf(prepared)]).toEqual([[true, true, true, true], []])
    expect(methodsOf(proxy.bodies.slice(1))).toEqual([['eth_call', 'eth_simulateV1']])
  })

  it('cover the first swap of a pair and a token behind a proxy, which take more than the table says', async () => {
    const routing = createTestRouting([chain.config])
    // A pair created in the same second does not write its prices yet, which is most of the gas that a first swap takes beyond the table.
    await node.rpc.call('evm_increaseTime', [2])
    const fresh = [...chain.tokens.keys()].filter((symbol) => symbol.startsWith('FRESH'))[0] as string
    const { wallet, question } = await arrange(routing, fresh)
    const [listed] = (await routing.find({ ...question, tokens: [fresh] })).routes
    const { baseFeePerGas } = await node.rpc.call<{ baseFeePerGas: string }>('eth_getBlockByNumber', ['pending', false])
    const byTable = quotedGas(listed as NonNullable<typeof listed>) / (BigInt(baseFeePerGas) + GWEI)
    const { transactions } = await routing.prepare({ ...question, chain: 'ETHEREUM', token: fresh })
    let used = 0n
    for (const transaction of transactions) {
      const sent = await chain.send(wallet, transaction)
      expect(sent.succeeded).toBe(true)
      used += sent.gasUsed
    }
    expect(used).toBeGreaterThan(byTable)
  })

  it('come from estimates where a node does not simulate, once the storage places of its tokens are known', async () => {
    proxy.behave(refusing(noSimulation))
    const routing = throughProxy()
    await routing.learnNodes(new AbortController().signal)
    const { wallet, question } = await arrange(routing)
    proxy.bodies.length = 0
    const prepared = await routing.prepare({ ...question, route: V3 })
    expect([limitsOf(prepared), reasonsOf(prepared)]).toEqual([[true, true, true, true], ['GAS_ESTIMATED']])
    expect(methodsOf(proxy.bodies.slice(1))).toEqual([['eth_call', ...Array(4).fill('eth_estimateGas')]])
    for (const transaction of prepared.transactions)
      expect((await chain.send(wallet, transaction)).succeeded).toBe(true)
  })

  it.each<[string, ProxyBehaviour, boolean[], string[]]>([
    [
      'refuses state overrides',
      refusing(noOverrides),
      [true, false, false, false],
      ['GAS_ESTIMATED', 'GAS_NOT_MEASURED'],
    ],
    [
      'ignores state overrides',
      refusing(noSimulation, (call) => void (call.method === 'eth_estimateGas' && call.params.splice(1))),
      [true, false, false, false],
      ['GAS_ESTIMATED', 'GAS_NOT_MEASURED'],
    ],
    [
      'knows neither method',
      refusing((call) => (call.method === 'eth_estimateGas' ? { code: -32601, message: '' } : noSimulation(call))),
      [false, false, false, false],
      ['GAS_NOT_MEASURED'],
    ],
    [
      'refuses a batch with a method that it does not know',
      async (exchange, response) => {
        if (exchange.body.includes('eth_simulateV1')) response.writeHead(403).end('not on your plan')
        else await refusing(noOverrides)(exchange, response)
      },
      [true, false, false, false],
      ['GAS_ESTIMATED', 'GAS_NOT_MEASURED'],
    ],
    [
      'estimates what no transaction can take',
      answeringEstimates(`0x${'f'.repeat(64)}`),
      [false, false, false, false],
      ['GAS_NOT_MEASURED'],
    ],
    [
      'estimates less than any transaction takes',
      answeringEstimates('0x1'),
      [false, false, false, false],
      ['GAS_NOT_MEASURED'],
    ],
    [
      'is behind the block of the quote',
      async (exchange, response) => {
        if (!exchange.body.includes('eth_simulateV1') || !exchange.body.startsWith('['))
          return passOn(exchange, response)
        const [timestamp, ...others] = JSON.parse(await exchange.next()) as { result: string }[]
        const early = { ...timestamp, result: `${timestamp?.result.slice(0, -8)}00000001` }
        response.end(JSON.stringify([early, ...others]))
      },
      [false, false, false, false],
      ['GAS_NOT_MEASURED'],
    ],
  ])('are left to the wallet where a node %s', async (_, behaviour, limits, reasons) => {
    proxy.behave(behaviour)
    const routing = throughProxy()
    await routing.learnNodes(new AbortController().signal)
    const { wallet, question } = await arrange(routing)
    const prepared = await routing.prepare({ ...question, route: V3 })
    expect([limitsOf(prepared), reasonsOf(prepared)]).toEqual([limits, reasons])
    for (const transaction of prepared.transactions)
      expect((await chain.send(wallet, transaction)).succeeded).toBe(true)
  })

  it('keep later scans in one request where a URL refuses whole batches for one method', async () => {
    proxy.behave(async (exchange, response) => {
      if (exchange.body.includes('eth_simulateV1')) response.writeHead(400).end('{"error":"no such method"}')
      else await passOn(exchange, response)
    })
    const routing = throughProxy()
    await routing.learnNodes(new AbortController().signal)
    const { question } = await arrange(routing, 'USDC')
    expect(reasonsOf(await routing.prepare(question))).toContain('GAS_ESTIMATED')
    proxy.bodies.length = 0
    await routing.prepare(question)
    expect(proxy.bodies.filter((body) => !body.startsWith('['))).toEqual([])
    expect(proxy.bodies.filter((body) => body.includes('eth_simulateV1'))).toEqual([])
  })

  it('come from another node where the first cannot measure', async () => {
    proxy.behave(refusing(noOverrides))
    const routing = createTestRouting([{ ...chain.config, rpcUrls: [proxy.url, node.rpc.url] }])
    const { question } = await arrange(routing)
    expect(reasonsOf(await routing.prepare({ ...question, route: V3 }))).toEqual([])
    proxy.bodies.length = 0
    expect(reasonsOf(await routing.prepare({ ...question, route: V3 }))).toEqual([])
    // The first is read, and not asked to measure.
    expect(proxy.bodies.length).toBe(1)
  })

  it.each<[string, ProxyBehaviour, number]>([
    ['1.2 million, where a node simulates', passOn, 54],
    ['5 million, where a node simulates', passOn, 225],
    ['1.2 million, where a node estimates', refusing(noSimulation), 54],
  ])('suffice for a contract that takes %s to be paid', async (_, behaviour, slots) => {
    proxy.behave(behaviour)
    const routing = throughProxy()
    await routing.learnNodes(new AbortController().signal)
    const payee = canonical(unusedAddress(`greedy payee ${cases++}`))
    await node.rpc.call('anvil_setCode', [payee, `0x60${slots.toString(16)}5b60015a5560019003806002575b00`])
    const wallet = await chain.newWallet(10n ** 18n)
    const currency = { invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const paymentReference = routing.addRequest({ payee, amount: '0.01', network: 'ETHEREUM', ...currency })
    const prepared = await routing.prepare({ paymentReference, wallet: wallet.address })
    const [transaction] = prepared.transactions
    expect(BigInt(transaction?.gas ?? 0)).toBeGreaterThan(BigInt(slots) * 22_000n)
    expect(quotedGas(prepared.route)).toBeGreaterThan(BigInt(slots) * 22_000n)
    const sent = await chain.send(wallet, transaction as PreparedTransaction)
    expect(sent).toMatchObject({ succeeded: true })
    expect(sent.gasUsed).toBeGreaterThan(BigInt(slots) * 22_000n)
  })

  it('are never below the table, whatever a node says', async () => {
    const tiny: ProxyBehaviour = async (exchange, response) => {
      const answers = JSON.parse(await exchange.next()) as { result: readonly { calls?: object[] }[] }[]
      for (const { result } of answers) {
        if (Array.isArray(result))
          for (const { calls = [] } of result) Object.assign(calls[0] ?? {}, { gasUsed: '0x5208' })
      }
      response.end(JSON.stringify(answers))
    }
    const routing = throughProxy()
    const { question } = await arrange(routing, 'USDC')
    const honest = await routing.prepare(question)
    proxy.behave(tiny)
    const lied = await routing.prepare(question)
    for (const [i, { gas }] of lied.transactions.entries()) {
      expect(BigInt(gas ?? 0)).toBeGreaterThan(50_000n)
      expect(BigInt(gas ?? 0)).toBeLessThanOrEqual(BigInt(honest.transactions[i]?.gas ?? 0))
    }
  })
})

describe('a transaction that would revert', () => {
  const BLACKLIST = '0xf9f92be4'

  it.each<[string, ProxyBehaviour]>([
    ['simulates', passOn],
    ['estimates', refusing(noSimulation)],
  ])('is not prepared where a node %s', async (_, behaviour) => {
    proxy.behave(behaviour)
    const routing = throughProxy()
    await routing.learnNodes(new AbortController().signal)
    const { payee, question } = await arrange(routing, 'USDC')
    expect((await routing.prepare(question)).transactions.length).toBe(2)
    await chain.sendAsRich({
      to: chain.token('USDC').address,
      data: `${BLACKLIST}${payee.slice(2).padStart(64, '0')}` as `0x${string}`,
    })
    const refused = await routing.prepare(question).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(WaybillError)
    expect(refused).toMatchObject({
      reason: 'ROUTE_WOULD_FAIL',
      metadata: { step: 'PAY', route: 'REQUEST_NETWORK_PAYMENT' },
    })
    expect((refused as WaybillError).metadata.detail).toMatch(/blacklisted|revert|failed/)
  })

  it('is not caused by a lack of gas in the wallet', async () => {
    const routing = throughProxy()
    const { wallet, question } = await arrange(routing, 'USDC')
    await node.rpc.call('anvil_setBalance', [wallet.address, '0x1'])
    const prepared = await routing.prepare(question)
    expect(limitsOf(prepared)).toEqual([true, true])
    expect(prepared.route.readiness.hasEnoughGas).toBe(false)
  })
})

describe('the route to prepare', () => {
  it.each<[string, Partial<PaymentQuestion>, string]>([
    ['none named', {}, 'REQUEST_NETWORK_PAYMENT'],
    ['its id in any case', { route: 'request_network_payment' }, 'REQUEST_NETWORK_PAYMENT'],
    ['the chain and the token of the request', { chain: 'mainnet', token: 'usdc' }, 'REQUEST_NETWORK_PAYMENT'],
    ['another token by its id', { chain: 'ethereum', token: 'DAI-ETHEREUM' }, 'ETHEREUM_ETHEREUM_DAI_USDC'],
    ['the best of several by one token', { chain: 'eip155:31337', token: 'USDT' }, V3],
  ])('is chosen by %s', async (_, chosen, id) => {
    const routing = createTestRouting([chain.config])
    const { wallet, question } = await arrange(routing)
    for (const symbol of ['USDC', 'DAI']) await chain.fund(chain.token(symbol), wallet.address, 10n ** 21n)
    expect((await routing.prepare({ ...question, ...chosen })).route.id).toBe(id)
  })

  it.each<[string, Partial<PaymentQuestion>, string]>([
    ['a chain alone', { chain: 'ETHEREUM' }, 'INCOMPLETE_ROUTE'],
    ['a token alone', { token: 'USDC' }, 'INCOMPLETE_ROUTE'],
    ['a chain beside an id', { route: 'REQUEST_NETWORK_PAYMENT', chain: 'ETHEREUM' }, 'INCOMPLETE_ROUTE'],
    ['a token beside an id', { route: 'REQUEST_NETWORK_PAYMENT', token: 'USDC' }, 'INCOMPLETE_ROUTE'],
    ['both beside an id', { route: V3, chain: 'ETHEREUM', token: 'USDC' }, 'INCOMPLETE_ROUTE'],
    ['an empty id', { route: '' }, 'MISSING_FIELD'],
    ['an empty chain', { chain: '', token: 'USDC' }, 'MISSING_FIELD'],
    ['an empty token', { chain: 'ETHEREUM', token: '' }, 'MISSING_FIELD'],
    ['an unknown chain', { chain: 'ETHERIUM', token: 'USDC' }, 'UNKNOWN_NETWORK'],
    ['a chain that is not served', { chain: 'BASE', token: 'USDC' }, 'NETWORK_NOT_CONFIGURED'],
    ['a token that is not on the chain', { chain: 'ETHEREUM', token: 'EURC' }, 'CURRENCY_NOT_ON_NETWORK'],
    ['a token that the wallet does not hold', { chain: 'ETHEREUM', token: 'ETH' }, 'ROUTE_UNAVAILABLE'],
    ['an id that no route of the request has', { route: 'BASE_BASE_DAI_USDC' }, 'UNKNOWN_ROUTE'],
  ])('is refused for %s', async (_, chosen, reason) => {
    const routing = createTestRouting([chain.config])
    const { question } = await arrange(routing, 'USDC')
    await expect(routing.prepare({ ...question, ...chosen })).rejects.toMatchObject({ reason })
  })
})

describe('a prepared payment', () => {
  it('warns of an amount above the outstanding balance, as the routes do', async () => {
    const routing = createTestRouting([chain.config])
    const { question } = await arrange(routing, 'USDC')
    const asked = { ...question, amount: '25.000001' }
    const { warnings } = await routing.find(asked)
    expect(warnings.map(({ reason }) => reason)).toEqual(['AMOUNT_ABOVE_OUTSTANDING'])
    expect(await routing.prepare(asked)).toMatchObject({ maxSourceAmount: '25.000001', warnings })
    expect((await routing.prepare(question)).warnings).toEqual([])
  })

  it('tells in one sentence what each transaction does', async () => {
    const routing = createTestRouting([chain.config])
    const { payee, question } = await arrange(routing, 'DAI')
    const { steps, maxSourceAmount, transactions } = await routing.prepare({
      ...question,
      route: 'ETHEREUM_ETHEREUM_DAI_USDC',
    })
    const spender = transactions[1]?.to
    expect(steps).toEqual([
      { kind: 'APPROVE', message: `Let the contract ${spender} take up to ${maxSourceAmount} DAI from the wallet.` },
      {
        kind: 'PAY',
        message: expect.stringMatching(
          new RegExp(`^Pay 25 USDC to ${payee}, with at most ${maxSourceAmount} DAI.$`, 'i'),
        ),
      },
    ])
  })
})

it('forgets what a node can do after an hour, and a suspicion after a minute', async () => {
  let nowMs = 0
  const { multicall } = chain.config
  const node = createRpcNode(proxy.url, SCAN_POLICY)
  const meter = createGasMeter({ chain: { multicall, tokens: [] }, node, slots: new Map(), clock: () => nowMs })
  const { signal } = new AbortController()
  const ranksAround = async (lastMs: number) => {
    await meter.learn(signal)
    const since = nowMs
    return [0, lastMs, lastMs + 1].map((afterMs) => {
      nowMs = since + afterMs
      return meter.rank()
    })
  }
  expect(await ranksAround(3_600_000)).toEqual([0, 0, 1])
  proxy.behave((_, response) => void response.writeHead(403).end('not on your plan'))
  expect(await ranksAround(60_000)).toEqual([2, 2, 1])
})

describe('the storage places of a token', () => {
  const wallet = canonical(unusedAddress('owner'))
  const spender = canonical(unusedAddress('spender'))

  /** `balanceOf` and `allowance` with Vyper's layout of mappings in slots 3 and 4; it tells the calls apart by the length of their calldata. */
  const VYPER = `0x36602414602e576004600052600435602052604060002060005260243560205260406000205460005260206000f35b6003600052600435602052604060002054600052602060 00f3`

  async function find(address: string): Promise<TokenSlots | undefined> {
    const [balance, allowance] = await createRpcNode(node.rpc.url, SCAN_POLICY).ask(
      encodeSlotSearch(canonical(address)),
    )
    return decodeSlotSearch(resultIn(balance), resultIn(allowance))
  }

  it.each(['USDC', 'USDT', 'DAI'])('are found for %s', async (symbol) => {
    const token = chain.token(symbol)
    const slots = await find(token.address)
    await chain.fund(token, wallet, 77n)
    const stored = (place: string) =>
      node.rpc.call<string>('eth_getStorageAt', [token.address, place, 'latest']).then(BigInt)
    expect(await stored(slots?.balanceOf(wallet) ?? '')).toBe(await chain.holding(wallet, token))
    const owner = await chain.newWallet()
    await chain.approve(owner, token, spender, 55n)
    expect(await stored(slots?.allowanceOf(canonical(owner.address), spender) ?? '')).toBe(55n)
  })

  it('are found with the layout of Vyper', async () => {
    const address = unusedAddress('a token of Vyper')
    await node.rpc.call('anvil_setCode', [address, VYPER.replaceAll(' ', '')])
    const slots = await find(address)
    const put = (place: string, value: number) =>
      node.rpc.call('anvil_setStorageAt', [address, place, `0x${value.toString(16).padStart(64, '0')}`])
    await put(slots?.balanceOf(wallet) ?? '', 91)
    await put(slots?.allowanceOf(wallet, spender) ?? '', 92)
    const token = { ...chain.token('USDC'), address }
    expect([await chain.holding(wallet, token), await chain.allowance(token, wallet, spender)]).toEqual([91n, 92n])
  })

  it('are not found for a contract that returns the same number to every call', async () => {
    const address = unusedAddress('a token that answers 7')
    await node.rpc.call('anvil_setCode', [address, '0x600760005260206000f3'])
    expect(await find(address)).toBeUndefined()
  })

  it('are searched once, on the first node that does not simulate', async () => {
    proxy.behave(refusing(noSimulation))
    const slots = new Map<ReturnType<typeof canonical>, TokenSlots>()
    const { multicall } = chain.config
    const tokens = chain.config.tokens.slice(0, 2)
    const meter = createGasMeter({
      chain: { multicall, tokens },
      node: createRpcNode(proxy.url, SCAN_POLICY),
      slots,
      clock: Date.now,
    })
    const signal = new AbortController().signal
    expect(meter.rank()).toBe(1)
    await meter.learn(signal)
    await meter.learn(signal)
    expect(meter.rank()).toBe(2)
    expect([...slots.keys()]).toEqual(tokens.map(({ address }) => address))
    const searches = methodsOf(proxy.bodies).filter((methods) => methods.every((method) => method === 'eth_call'))
    expect(searches.length).toBe(tokens.length)
  })
})

describe('the tip on a chain where nobody tips', () => {
  it('is what the node suggests, so that the gas line matches what is spent', async () => {
    for (let block = 0; block < 6; block++) await node.rpc.call('evm_mine')
    const routing = createTestRouting([chain.config])
    const { wallet, question } = await arrange(routing, 'USDC')
    for (let block = 0; block < 6; block++) await node.rpc.call('evm_mine')
    const history = await node.rpc.call<{ reward: string[][] }>('eth_feeHistory', ['0x5', 'latest', [50]])
    expect(history.reward.flat().every((tip) => BigInt(tip) === 0n)).toBe(true)
    const { route, transactions } = await routing.prepare(question)
    let spent = 0n
    for (const transaction of transactions) spent += (await chain.send(wallet, transaction)).gasCost
    expect(Number(quotedGas(route)) / Number(spent)).toBeGreaterThan(0.75)
    expect(Number(quotedGas(route)) / Number(spent)).toBeLessThan(1.25)
  })
})
