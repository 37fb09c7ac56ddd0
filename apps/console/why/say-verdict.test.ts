import { create, type Message, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import type { RouteSchema } from '../../../clients/typescript/gen/payments/v1/route_pb.js'
import { GetPaymentRoutesResponseSchema } from '../../../clients/typescript/gen/payments/v1/routes_service_pb.js'
import { sayToCustomer, sayVerdict } from './say-verdict.ts'

type Answer = MessageInitShape<typeof GetPaymentRoutesResponseSchema>
type Route = Exclude<MessageInitShape<typeof RouteSchema>, Message>

const direct: Route = {
  id: 'REQUEST_NETWORK_PAYMENT',
  chain: 'ETHEREUM',
  token: 'USDC',
  provider: 'request-network',
  sourceAmount: '150',
  feeAmount: '2.5',
  feeCurrency: 'USDC-ETHEREUM',
  feeIsComplete: true,
  totalCost: 0.02,
  estimatedDurationSeconds: 20,
  readiness: { hasEnoughGas: true },
  warnings: [],
}
const bridge: Route = {
  ...direct,
  id: 'BSC_ETHEREUM_DAI_USDC',
  chain: 'BSC',
  token: 'DAI',
  provider: 'lifi',
  sourceAmount: '153.821481909355274844',
  totalCost: 0.01,
}
const noGas = (route: Route): Route => ({
  ...route,
  readiness: { hasEnoughGas: false },
  warnings: [{ reason: 'INSUFFICIENT_GAS', message: 'the wallet has 0 ETH for gas and needs about 0.1' }],
})
const missing = (reason: string, remedy: string, provider?: string) => ({
  chain: 'ETHEREUM',
  reason,
  message: `because of ${reason}`,
  remedy,
  ...(provider !== undefined && { provider }),
})
const tooPoor = missing('INSUFFICIENT_BALANCE', 'add 150 USDC on ETHEREUM', 'request-network')

const answer = (parts: Answer) =>
  create(GetPaymentRoutesResponseSchema, {
    amount: '150',
    currency: 'USDC-ETHEREUM',
    ...parts,
  })

it.each<[string, Answer, string, string, string]>([
  [
    'one way',
    { routes: [direct] },
    'good',
    'This wallet can pay in one way',
    'It pays 150 USDC on ETHEREUM, directly, for 2.5 USDC in fees.',
  ],
  [
    'the cheapest of several, not the first',
    { routes: [direct, bridge] },
    'good',
    'This wallet can pay in 2 ways',
    'Cheapest: 153.821… DAI on BSC, over lifi, for 2.5 USDC in fees.',
  ],
  [
    'a cost that is not complete never as the cheapest',
    { routes: [direct, { ...bridge, feeIsComplete: false }] },
    'good',
    'This wallet can pay in 2 ways',
    'Cheapest: 150 USDC on ETHEREUM, directly, for 2.5 USDC in fees.',
  ],
  [
    'ways that lack gas apart from those that do not',
    { routes: [direct, noGas(bridge)] },
    'good',
    'This wallet can pay in one way',
    'It pays 150 USDC on ETHEREUM, directly, for 2.5 USDC in fees. One more way lacks gas.',
  ],
  [
    'gas of a wallet whose gas others may pay as enough',
    { routes: [{ ...direct, readiness: {} }] },
    'good',
    'This wallet can pay in one way',
    'It pays 150 USDC on ETHEREUM, directly, for 2.5 USDC in fees.',
  ],
  [
    'gas where only gas is missing',
    { routes: [noGas(direct)] },
    'warn',
    'This wallet has the funds but no coins for gas',
    'The wallet has 0 ETH for gas and needs about 0.1.',
  ],
  [
    'what helps the direct payment first',
    { unavailable: [missing('NO_POOL', 'swap elsewhere'), tooPoor] },
    'bad',
    'This wallet cannot pay 150 USDC on ETHEREUM',
    'What helps: add 150 USDC on ETHEREUM.',
  ],
  [
    'that sources failed',
    { degraded: true, unavailable: [missing('CHAIN_UNREACHABLE', 'try again in 5 s')] },
    'warn',
    'As far as we can tell, this wallet cannot pay 150 USDC on ETHEREUM',
    'What helps: try again in 5 s. Some sources failed; options may be missing: because of CHAIN_UNREACHABLE.',
  ],
  [
    'that nothing was asked for that can pay',
    { currency: 'USD' },
    'bad',
    'This wallet cannot pay 150 USD',
    'None of the chosen chains or tokens can pay it.',
  ],
  [
    'that the request is paid, before anything else',
    { warnings: [{ reason: 'REQUEST_ALREADY_PAID', message: 'final payments cover this request' }] },
    'good',
    'This request is already paid',
    'Final payments cover this request.',
  ],
  [
    'that a payment is pending',
    { warnings: [{ reason: 'PAYMENT_PENDING', message: 'wait until they are final' }] },
    'warn',
    'Do not pay again: a payment is pending',
    'Wait until they are final.',
  ],
  [
    'that nobody pays oneself',
    { warnings: [{ reason: 'WALLET_IS_PAYEE', message: 'the wallet is the payee; pay with another wallet' }] },
    'bad',
    'This wallet is the payee’s own',
    'The wallet is the payee; pay with another wallet.',
  ],
])('says %s', (_, parts, tone, title, says) => {
  expect(sayVerdict(answer(parts))).toEqual({ tone, title, says })
})

const question = { reference: '0x92a4a5b4a45fd0a1', wallet: '0xAb', answeredAt: '2026-11-23 08:40:00 UTC' }

it.each([
  [
    'what helps',
    [missing('NO_PAYMENT_CONTRACT', 'configure it in the chains file'), tooPoor],
    'What helps: add 150 USDC on ETHEREUM.\n',
  ],
  ['nothing for the operator', [missing('NO_PAYMENT_CONTRACT', 'configure it in the chains file')], ''],
])('tells a customer %s', (_, unavailable, says) => {
  expect(sayToCustomer(answer({ unavailable }), question)).toBe(
    `About the payment of 150 USDC on ETHEREUM (reference 0x92a4a5b4a45fd0a1) from the wallet 0xAb:
This wallet cannot pay 150 USDC on ETHEREUM.
${says}
As of 2026-11-23 08:40:00 UTC. Fees and rates change.`,
  )
})

it('tells a customer how to pay, and not to pay twice', () => {
  expect(sayToCustomer(answer({ routes: [noGas(bridge), direct] }), question)).toContain(
    'It pays 150 USDC on ETHEREUM, directly, for 2.5 USDC in fees.',
  )
  const warnings = [{ reason: 'PAYMENT_PENDING', message: 'wait until they are final' }]
  expect(sayToCustomer(answer({ warnings }), question)).toContain(
    'Do not pay again: a payment is pending.\nWait until they are final.',
  )
})
