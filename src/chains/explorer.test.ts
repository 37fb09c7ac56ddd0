import { expect, it } from 'vitest'
import { explainTemplate, linkAddress, linkTransaction } from './explorer.ts'

const explorer = { transaction: 'https://basescan.org/tx/{hash}', address: 'https://basescan.org/address/{address}' }

it('links a transaction and an address, and nothing without one or without an explorer', () => {
  expect(linkTransaction(explorer, '0x12')).toBe('https://basescan.org/tx/0x12')
  expect(linkAddress(explorer, '0xAb')).toBe('https://basescan.org/address/0xAb')
  expect(linkAddress(explorer, undefined)).toBeUndefined()
  expect(linkTransaction(undefined, '0x12')).toBeUndefined()
})

it.each([
  ['https://basescan.org/tx/{hash}', undefined],
  ['http://localhost:4000/tx/{hash}?chain=1', undefined],
  ['https://basescan.org/tx/', 'does not have {hash} once'],
  ['https://basescan.org/{hash}/{hash}', 'does not have {hash} once'],
  ['http://basescan.org/tx/{hash}', 'is not an https URL'],
  ['javascript:alert(1)//{hash}', 'is not an https URL'],
  ['basescan.org/tx/{hash}', 'is not an https URL'],
  ['https://{hash}.basescan.org/', 'before its path'],
  ['', 'does not have {hash} once'],
])('the template %j: %s', (template, fault) => {
  const said = explainTemplate(template, '{hash}')
  if (fault === undefined) expect(said).toBeUndefined()
  else expect(said).toContain(fault)
})
