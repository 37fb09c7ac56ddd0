import { expect, it } from 'vitest'
import { readConnectionUrl } from './check-database.ts'

const read = (parameters: string, host = 'db.example.com') =>
  readConnectionUrl(`postgres://u:hush@${host}/waybill${parameters}`)

it.each([
  ['', /not encrypted: add sslmode=verify-full/],
  ['?sslmode=disable', /not encrypted/],
  ['?ssl=0', /not encrypted/],
  ['?sslmode=no-verify', /sslmode=no-verify encrypts, but anybody who answers/],
  ['?sslmode=require&uselibpqcompat=true', /sslmode=require encrypts, but anybody/],
  ['?sslmode=prefer&uselibpqcompat=true', /anybody/],
  ['?sslmode=verify-ca&sslrootcert=/ca.pem&uselibpqcompat=true', /sslmode=verify-ca does not check the host name/],
  ['?sslmode=require&sslrootcert=/ca.pem&uselibpqcompat=true', /does not check the host name/],
  ['?sslmode=require', /sslmode=require is taken as verify-full/],
  ['?sslmode=prefer', /taken as verify-full/],
  ['?sslmode=allow', /taken as verify-full/],
  ['?sslmode=verify-ca', /taken as verify-full/],
])('a URL with "%s" has a warning', (parameters, warning) => {
  const { warnings, faults } = read(parameters)
  expect(warnings).toEqual([expect.stringMatching(warning)])
  expect(warnings[0]).not.toContain('hush')
  expect(faults).toEqual([])
})

it.each([
  '?sslmode=verify-full',
  '?sslmode=verify-full&sslrootcert=/ca.pem',
  '?ssl=true',
  '?sslrootcert=/ca.pem',
  '?sslrootcert=system',
])('a URL with "%s" has none', (parameters) => {
  expect(read(parameters).warnings).toEqual([])
})

it.each(['localhost', '127.0.0.1:5433', '[::1]'])('no warning names an unencrypted connection to %s', (host) => {
  expect(read('', host).warnings).toEqual([])
})

it('no warning names an unencrypted connection through a socket', () => {
  expect(read('?host=/run/postgresql', 'unused').warnings).toEqual([])
  expect(read('?host=%2Frun%2Fpostgresql', 'unused').warnings).toEqual([])
})

it.each(['verify_full', 'on', 'VERIFY-FULL'])('the mode %s is refused', (mode) => {
  expect(read(`?sslmode=${mode}`).faults).toEqual([`sslmode is "${mode}": use verify-full, or disable`])
})

it.each([
  ['?sslmode=require', '?sslmode=verify-full'],
  ['?sslmode=verify-ca&sslrootcert=%2Fca.pem', '?sslmode=verify-full&sslrootcert=%2Fca.pem'],
  ['?sslrootcert=system', '?sslmode=verify-full'],
  ['?sslmode=require&uselibpqcompat=true', '?sslmode=require&uselibpqcompat=true'],
  ['?sslmode=disable', '?sslmode=disable'],
  ['', ''],
])('the driver gets "%s" as "%s"', (given, taken) => {
  expect(read(given).url).toBe(`postgres://u:hush@db.example.com/waybill${taken}`)
})
