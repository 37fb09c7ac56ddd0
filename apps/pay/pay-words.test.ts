import { type Route, Route_StepKind, Route_Tag, PaymentRequest_Status as Status } from '@waybill/client/checkout'
import type { PayOutcome } from '@waybill/client/wallet'
import { describe, expect, it } from 'vitest'
import { isPayable, stateOf } from '../shared/request-state.ts'
import { findSender } from './checkout-screen.tsx'
import { originAround } from './frame.ts'
import { payTexts } from './language.ts'
import { linksIntoApps, readLink } from './page-link.ts'
import { isCounted, parseReceipt } from './receipt.tsx'
import { sayError, sayOutcome, sayUnderWay } from './say-outcome.ts'
import { sayRoute } from './say-route.ts'
import { addProgress } from './use-payment.ts'

const KEY = `wbp_${'k'.repeat(40)}`

describe('the link', () => {
  it.each([
    ['/pay/0x1122334455667788', `?key=${KEY}`, undefined],
    ['/pay/1122334455667788', `?lang=de&key=${KEY}`, undefined],
    ['/pay/0x1122334455667788', '', 'INCOMPLETE'],
    ['/pay/0x1122334455667788', '?key=demo', 'INCOMPLETE'],
    ['/pay/0x1122334455667788', `?key=wb_${'k'.repeat(40)}`, 'SECRET_KEY'],
    ['/pay/0x11223344556677', `?key=${KEY}`, 'INCOMPLETE'],
    ['/pay/0x112233445566778899', `?key=${KEY}`, 'INCOMPLETE'],
    ['/pay/hello', `?key=${KEY}`, 'INCOMPLETE'],
    ['/pay/%', `?key=${KEY}`, 'INCOMPLETE'],
  ])('%s%s: %s', (pathname, search, problem) => {
    expect(readLink({ pathname, search }).problem).toBe(problem)
  })

  it('into the apps of wallets carries the page as each of them takes it', () => {
    const page = `https://pay.example.com:8443/pay/0x1122334455667788?key=${KEY}&lang=de`
    const encoded = encodeURIComponent(page)
    expect(linksIntoApps(page).map(({ href }) => href)).toEqual([
      `https://link.metamask.io/dapp/pay.example.com:8443/pay/0x1122334455667788?key=${KEY}&lang=de`,
      `https://link.trustwallet.com/open_url?coin_id=60&url=${encoded}`,
      `https://go.cb-w.com/dapp?cb_url=${encoded}`,
    ])
  })

  it('leaves a secret key out of what the page goes on with', () => {
    expect(readLink({ pathname: '/pay/0x1122334455667788', search: '?key=wb_secret' }).apiKey).toBe('')
  })
})

it('has words for each status, two of which can be paid', () => {
  const states = Object.values(Status)
    .filter((status) => typeof status === 'number' && status !== Status.STATUS_UNSPECIFIED)
    .map((status) => stateOf({ status }))
  expect(new Set(states)).toEqual(new Set(Object.keys(payTexts.states)))
  expect(states.filter(isPayable)).toEqual(['OPEN', 'PARTIALLY_PAID'])
})

const failed = (
  reason: 'WRONG_ACCOUNT' | 'WRONG_CHAIN' | 'WALLET_ERROR' | 'NO_ANSWER' | 'INTERRUPTED',
  code?: number,
): PayOutcome => ({
  outcome: 'FAILED',
  reason,
  code,
  message: 'out of order',
})
const unknown = (
  reason: 'WALLET_ERROR' | 'NO_ANSWER' | 'REPLACED' | 'DROPPED',
  transactionHash?: string,
): PayOutcome => ({
  outcome: 'UNKNOWN',
  reason,
  code: undefined,
  message: '',
  ...(transactionHash !== undefined && { transactionHash }),
})
const WALLET = `0x${'a'.repeat(40)}`
const asked = (more: object): PayOutcome => ({
  outcome: 'ALREADY_ASKED',
  wallet: WALLET,
  askedAt: new Date('2026-03-01T12:00:00Z'),
  isOtherTab: false,
  ...more,
})

describe('how a payment ended', () => {
  it.each([
    [{ outcome: 'MINED', transactionHashes: [] }, /on the chain/, false],
    [{ outcome: 'SENT', transactionHashes: [] }, /Do not pay again/, false],
    [{ outcome: 'AMOUNT_CHANGED', isAsking: false }, /amount due has changed.*Nothing was paid/, true],
    [{ outcome: 'AMOUNT_CHANGED', isAsking: true }, /amount due has changed.*If your wallet still asks.*decline/, true],
    [unknown('WALLET_ERROR'), /Do not pay again/, false],
    [unknown('DROPPED'), /Do not pay again/, false],
    [unknown('REPLACED'), /Do not pay again/, false],
    [{ outcome: 'REFUSED' }, /Nothing was paid/, true],
    [{ outcome: 'REVERTED', transactionHash: undefined }, /Nothing was paid/, true],
    [{ outcome: 'EXPIRED' }, /Nothing was paid/, true],
    [{ outcome: 'QUOTE_CHANGED', newQuote: { sourceAmount: '1234.50', token: 'DAI' } as Route }, /1,234\.50 DAI/, true],
    [{ outcome: 'QUOTE_CHANGED', newQuote: undefined }, /Nothing was paid\. You can choose again/, true],
    [failed('WALLET_ERROR'), /Nothing was paid\. The wallet says: out of order/, true],
    [failed('WRONG_ACCOUNT'), /another account.*Nothing was paid/, true],
    [failed('WRONG_CHAIN'), /network.*Nothing was paid/, true],
    [failed('WALLET_ERROR', -32002), /already shows a request.*Nothing was paid.*answer that request/, true],
    [failed('WRONG_CHAIN', -32002), /already shows a request/, true],
    [
      failed('WRONG_CHAIN', 4902),
      /did not switch networks.*Nothing was paid. Switch to Arbitrum One .*add it there.*The wallet says: out of order/,
      true,
    ],
    [failed('NO_ANSWER'), /did not answer.*Nothing was paid.*refuse it/, true],
    [failed('INTERRUPTED'), /Choose a way again/, true],
    [unknown('NO_ANSWER'), /Do not pay again/, false],
    [asked({}), /already asked.*0xaaaa\u2060…\u2060aaaa.*confirm or refuse it there.*may pay twice/, false],
    [asked({ isOtherTab: true }), /already asked.*Another tab/, false],
    [
      asked({ isOtherTab: true, wallet: undefined, askedAt: undefined }),
      /already asked.*Another tab.*may pay twice/,
      false,
    ],
  ] as const)('%o', (end, words, mayRetry) => {
    const said = sayOutcome(end, {
      route: { chain: 'ARBITRUM-ONE', estimatedDurationSeconds: 240 },
      network: 'ARBITRUM-ONE',
    })
    expect(`${said.title}. ${said.says}`).toMatch(words)
    expect(said.mayRetry).toBe(mayRetry)
  })

  it.each([
    [unknown('WALLET_ERROR'), true],
    [unknown('NO_ANSWER'), true],
    [asked({}), true],
    // The transaction is known: it can be followed.
    [unknown('DROPPED', '0x1'), true],
    [unknown('REPLACED', '0x1'), true],
    [{ outcome: 'SENT', transactionHashes: [] }, false],
    [{ outcome: 'REFUSED' }, false],
  ] as const)('%o lets the payer say that nothing was sent: %s', (end, may) => {
    expect(sayOutcome(end).again !== undefined).toBe(may)
  })

  it('says how long a bridge takes', () => {
    const route = { chain: 'ARBITRUM-ONE', estimatedDurationSeconds: 240 }
    const { says } = sayOutcome({ outcome: 'MINED', transactionHashes: [] }, { route, network: 'BASE' })
    expect(says).toMatch(/bridge delivers in about 4 minutes.*close this page/)
  })

  it('tells who comes back while it is on its way not to pay again, and by which wallet it was', () => {
    const { says } = sayUnderWay({ sentAt: Date.parse('2026-03-01T12:00:00Z'), wallet: WALLET })
    expect(says).toMatch(/0xaaaa\u2060…\u2060aaaa.*Do not pay again/)
  })

  it('shows no words of a program for an error that no service sent', () => {
    expect(sayError(new TypeError('x is undefined')).says).toBe('Nothing was paid. Try again in a moment.')
  })
})

it.each([
  ['10', '0', true],
  ['10', '1', true],
  ['10', '1.000000000000000001', false],
  // Somebody else has paid a part, or a refund came.
  ['10', '6', false],
  ['10', '10', false],
  ['10', '12', false],
  ['0.000000000000000010', '0.000000000000000001', true],
])('a payment of all of %s counts when %s is left: %s', (outstanding, now, counted) => {
  expect(isCounted({ outstanding }, now)).toBe(counted)
})

it('what stands in the place of a receipt and is none is not read', () => {
  const receipt = { hash: '0x1', wallet: '0xabc', outstanding: '10.5', sentAt: 1, amount: '3' }
  expect(parseReceipt(JSON.stringify(receipt))).toEqual(receipt)
  const others = [null, 1, 'x', [], { ...receipt, outstanding: undefined }, { ...receipt, outstanding: 'x' }]
  for (const other of [...others, { ...receipt, wallet: 7 }, { ...receipt, sentAt: '1' }]) {
    expect(parseReceipt(JSON.stringify(other))).toBeUndefined()
  }
})

it('shows one step as now and those before as done', () => {
  const steps = (
    [
      { type: 'SWITCHING_CHAIN', chainId: '0x1' },
      { type: 'ASKING', step: 1, steps: 2, message: `Let 0x${'a'.repeat(40)} take 5 USDC` },
      { type: 'SENT', step: 1, transactionHash: '0x1' },
      { type: 'STEP_MINED', step: 1, transactionHash: '0x1' },
      { type: 'ASKING_BATCH', steps: 2 },
    ] as const
  ).reduce(addProgress, [])
  expect(steps.map(({ id, state }) => `${id} ${state}`)).toEqual([
    'chain DONE',
    'ask-1 DONE',
    'sent-1 DONE',
    'batch NOW',
  ])
  expect(steps[1]?.says).toContain('0xaaaa\u2060…\u2060aaaa')
})

describe('the words of a route', () => {
  const { APPROVE, PAY } = Route_StepKind
  const route = {
    id: 'r',
    token: 'DAI',
    chain: 'BASE',
    sourceAmount: '1234.123456789',
    feeAmount: '1',
    feeCurrency: 'USDC-BASE',
    feeInUsd: '0.004',
    sourceAmountInUsd: '1234.5600001',
    feeIsComplete: true,
    priceImpact: 0,
    estimatedDurationSeconds: 20,
    tags: [Route_Tag.FASTEST],
    readiness: { hasEnoughGas: true, steps: [APPROVE, PAY] },
    warnings: [],
  } as unknown as Route

  it('marks what is cut off and what is less than a cent', () => {
    const said = sayRoute(route, 'BASE')
    expect(said).toMatchObject({
      pays: '1,234.12… DAI',
      exactly: '1,234.123456789 DAI',
      worth: '≈ $1,234.56',
      where: 'on Base',
      costs: 'Fees < $0.01 · about 20 seconds',
      confirmations: 'Up to 2 confirmations in your wallet',
      tags: ['Fastest'],
      warnings: [],
    })
  })

  it.each([
    ['a payment of one step', { readiness: { steps: [PAY] } }, { confirmations: 'One confirmation in your wallet' }],
    ['fees without a price', { feeInUsd: undefined }, { costs: 'Fees 1 USDC-BASE · about 20 seconds' }],
    [
      'fees that lack a part',
      { feeIsComplete: false },
      { costs: 'Fees < $0.01 and others of unknown price · about 20 seconds' },
    ],
    [
      'a payment that is approved first and crosses chains',
      { chain: 'BSC', readiness: { steps: [APPROVE, PAY], needsApproval: true } },
      { where: 'on BNB Chain', notes: [payTexts.reasons.approval, payTexts.reasons.bridge] },
    ],
    ['a pool that moves', { priceImpact: 0.0123 }, { warnings: [expect.stringContaining('1.2%')] }],
    [
      'no gas',
      {
        warnings: [
          {
            reason: 'INSUFFICIENT_GAS',
            message: '',
            metadata: { missing: '0.001263', currency: 'ETH', chain: 'BASE' },
          },
        ],
      },
      { warnings: ['You need about 0.00127 ETH more on Base for the network fee.'] },
    ],
    [
      'every warning of the service, beside what the page says itself',
      { priceImpact: 0.02, warnings: [{ message: 'a pool is off' }, { message: 'uniswap-v2 has no price.' }] },
      { warnings: ['A pool is off.', 'uniswap-v2 has no price.', expect.stringContaining('2%')] },
    ],
  ])('%s', (_, change, words) => {
    expect(sayRoute({ ...route, ...change } as Route, 'BASE')).toMatchObject(words)
  })
})

it.each([
  [
    'the browser names it',
    { ancestors: ['https://shop.example'], referrer: 'https://other.example/' },
    'https://shop.example',
  ],
  [
    'the innermost of several',
    { ancestors: ['https://a.example', 'https://b.example'], referrer: '' },
    'https://a.example',
  ],
  ['only a referrer', { ancestors: undefined, referrer: 'https://shop.example/cart?id=1' }, 'https://shop.example'],
  ['neither', { ancestors: undefined, referrer: '' }, undefined],
  ['no origin to send to', { ancestors: ['null'], referrer: '' }, undefined],
  ['a file', { ancestors: undefined, referrer: 'file:///shop.html' }, undefined],
])('tells the page around: %s', (_, around, origin) => {
  expect(originAround(around)).toBe(origin)
})

it('knows from which wallet this request was paid before a reload', () => {
  const entries: [string, string][] = [
    ['other', ''],
    ['waybill:pay:1122334455667788:0xabc', '{}'],
    ['waybill:pay:aabbccddeeff0011:0xabc', '{"minedAtMs":1}'],
    ['waybill:pay:aabbccddeeff0011:0xdef', '{}'],
  ]
  expect(findSender('0xAABBccddeeff0011', entries)).toBe('0xdef')
  expect(findSender('0x0000000000000000', entries)).toBeUndefined()
})
