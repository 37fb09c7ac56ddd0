import { expect, it } from 'vitest'
import { renewedCertificate, testCertificate } from '../../../test/support/tls-certificate.ts'
import { findTlsFaults } from './tls-certificate.ts'

const now = new Date('2030-01-01T00:00:00Z')

it.each([
  ['a valid one', {}, now, []],
  ['an expired one', {}, new Date('2200-01-01T00:00:00Z'), [/^cert expired on 2126-/]],
  ['one of the future', {}, new Date('2000-01-01T00:00:00Z'), [/^cert is not valid before 2026-/]],
  ['no certificate', { cert: 'x' }, now, [/^cert is not a certificate in PEM/]],
  ['neither', { cert: 'x', key: 'y' }, now, [/^cert is not/, /^key is not a private key/]],
  ['a key of another', { key: renewedCertificate.key }, now, [/^key is not the key of/]],
])('tells what is wrong with %s', (_name, parts, at, faults) => {
  const found = findTlsFaults({ ...testCertificate, ...parts }, at).map(({ file, fault }) => `${file} ${fault}`)
  expect(found).toEqual(faults.map((fault) => expect.stringMatching(fault)))
})
