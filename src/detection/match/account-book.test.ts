import { expect, it } from 'vitest'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { openAccountBook } from '../find/account-book.ts'
import { eventKeyOf } from './detected.ts'
import type { SeenEvent } from './read-transaction.ts'

const address = (digit: string) => `0x${digit.repeat(40)}` as Address
const txHash: Hex = `0x${'a'.repeat(64)}`
const topic: Hex = `0x${'b'.repeat(64)}`

const conversionOf = (dollars: bigint): SeenEvent => ({
  emitter: address('1'),
  topic,
  token: address('2'),
  to: address('3'),
  amount: 5_000000n,
  feeAmount: 0n,
  feeAddress: address('0'),
  eventIndex: 0,
  logIndex: 0,
  received: 5_000000n,
  feeReceived: 0n,
  swapFeeReceived: 0n,
  isCarried: false,
  conversion: { amount: dollars * 10n ** 8n, currency: address('4'), feeAmount: 0n },
})

async function acceptedAs(event: SeenEvent) {
  const accepted = {
    as: 'PAYMENT' as const,
    topic,
    event: {
      emitter: address('1'),
      token: address('2'),
      to: address('3'),
      amount: '5000000',
      invoiceAmount: '500000000',
      invoiceCurrency: address('4'),
    },
  }
  const book = await openAccountBook(
    {
      requestsOfTopics: async () => [],
      payersOf: async () => new Map(),
      detectedPayersOf: async () => new Map(),
      walletsOf: async () => new Map(),
      acceptedOf: async () => new Map([[eventKeyOf({ txHash, eventIndex: 0 }), accepted]]),
      reportedPayersOf: async () => new Map(),
    },
    { accountId: 1, chainId: 'eip155:1', events: [{ event, txHash }], areReread: false },
  )
  return book.acceptedAs(txHash, event)
}

it('the acceptance of a conversion does not hold for another fiat amount, which the transaction may have when it is mined again', async () => {
  expect(await acceptedAs(conversionOf(5n))).toBe('PAYMENT')
  expect(await acceptedAs(conversionOf(5_000n))).toBeUndefined()
  const { conversion: _, ...plain } = conversionOf(5n)
  expect(await acceptedAs(plain)).toBeUndefined()
})
