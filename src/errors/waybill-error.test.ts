import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { reasons } from './reasons.ts'
import { explain, inOneLine, kindOf, printable, waybillError } from './waybill-error.ts'

describe('the table of reasons', () => {
  it.each(Object.entries(reasons))('%s says what was wrong, and what to do', (name, entry) => {
    expect(name).toMatch(/^[A-Z][A-Z0-9_]{2,62}$/)
    expect(entry.message).not.toBe('')
    expect(entry.message).not.toMatch(/[.;]$/)
    expect(entry.in.length).toBeGreaterThan(0)
    expect(entry.kind === 'NOTICE').toBe(!entry.in.includes('error'))
    if (name !== 'CALL_CANCELLED') expect(entry.remedy).not.toBe('')
  })
})

describe('the files of the table', () => {
  it('name no reason twice', async () => {
    const folder = join(import.meta.dirname, 'reasons')
    const files = (await readdir(folder)).filter((name) => name !== 'reason-entry.ts')
    const modules: Record<string, object>[] = await Promise.all(files.map((name) => import(join(folder, name))))
    const names = modules.flatMap((module) => Object.values(module).flatMap((part) => Object.keys(part)))
    expect(names.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })
})

describe('waybillError', () => {
  it('says what was wrong with the value, then what to do', () => {
    const error = waybillError('INVALID_TX_HASH', { field: 'txHash', value: '0x12' })
    expect(error.message).toBe(
      'txHash: "0x12" is not a transaction hash; send 64 hexadecimal digits, 0x before them optional',
    )
    expect(error.metadata).toEqual({ field: 'txHash', value: '0x12' })
    expect(error.violations).toEqual([{ field: 'txHash', reason: 'INVALID_TX_HASH', description: error.message }])
    expect(kindOf(error.reason)).toBe('INVALID_INPUT')
  })

  it('keeps the cause, and has no violation without a field', () => {
    const cause = new Error('refused')
    const error = waybillError('DATABASE_UNAVAILABLE', {}, { cause })
    expect(error.cause).toBe(cause)
    expect(error.violations).toEqual([])
  })

  it('cuts long values and shows no control characters', () => {
    expect(printable('a\u0000\n\u202eb')).toBe('a���b')
    const error = waybillError('INVALID_TX_HASH', { field: 'txHash', value: 'x'.repeat(1_000_000) })
    expect(error.message.length).toBeLessThan(300)
  })

  it('shows no API key that a caller sent as something else', () => {
    const error = waybillError('INVALID_TX_HASH', { field: 'txHash', value: `a wb_${'k3Y'.repeat(13)}9 b` })
    expect([error.metadata['value'], error.message]).toEqual(['a wb_k3Yk… b', expect.not.stringContaining('k3Yk3')])
    expect(printable(`/a/wbp_${'k3Y'.repeat(13)}9`)).toBe('/a/wbp_k3Yk…')
    expect(printable('wb_short')).toBe('wb_short')
  })

  it('does not fill in names and patterns that a value holds', () => {
    expect(explain('UNKNOWN_ACCOUNT', { value: '{field} $& $1' }).message).toBe('there is no account "{field} $& $1"')
  })

  it('leaves out an empty remedy', () => {
    expect(inOneLine(explain('CALL_CANCELLED', {}))).toBe('the caller cancelled the call')
  })
})
