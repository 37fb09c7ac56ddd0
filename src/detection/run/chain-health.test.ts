import { beforeEach, describe, expect, it } from 'vitest'
import { recordLogs } from '../../../test/support/logs.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type ChainHealth, createChainHealth } from './chain-health.ts'

let nowMs: number
let logs: ReturnType<typeof recordLogs>
let health: ChainHealth

beforeEach(() => {
  nowMs = 0
  logs = recordLogs()
  health = createChainHealth({ fields: { chain: 'BASE' }, logger: logs, clock: () => new Date(nowMs) })
})

const logged = () => logs.records.map(({ level, message }) => `${level}: ${message}`)
const at = (seconds: number) => {
  nowMs = seconds * 1_000
}
const outage = new RpcError('UNREACHABLE', 'gone')

describe('the trouble of a chain', () => {
  it('is logged at once when a scan fails, and again every minute', () => {
    for (const seconds of [0, 1, 59, 60, 61, 119, 120]) {
      at(seconds)
      health.failed(new Error(`at ${seconds}`))
    }
    expect(logged()).toEqual(Array(3).fill('error: a look at the chain failed; it is tried again'))
    expect(health.status()).toEqual({ reachable: true, failing: { since: new Date(0), reason: 'at 120' } })
  })

  it('is an error once it has lasted ten minutes, however it began', () => {
    for (const seconds of [0, 599, 661]) {
      at(seconds)
      health.failed(outage)
    }
    const message = 'the chain does not answer; it is tried again'
    expect(logged()).toEqual([`warn: ${message}`, `warn: ${message}`, `error: ${message}`])
  })

  it('is a warning while the database is away, which passes by itself', () => {
    health.failed(Object.assign(new Error('terminating connection'), { code: '57P01' }))
    expect(logged()).toEqual(['warn: a look at the chain failed; it is tried again'])
  })

  it('is logged after ten seconds when scans come to nothing', () => {
    for (const seconds of [0, 5, 9]) {
      at(seconds)
      health.waits('no receipt')
      expect(health.status()).toEqual({ reachable: true })
    }
    at(10)
    health.waits('no receipt')
    expect(health.status()).toEqual({ reachable: true, failing: { since: new Date(0), reason: 'no receipt' } })
    expect(logged()).toEqual(['warn: the chain does not move; it is tried again'])
  })

  it('ends when the chain moves, which is logged only if the trouble was', () => {
    health.waits('no receipt')
    health.moved()
    expect(logged()).toEqual([])
    health.failed(new Error('no'))
    health.moved()
    expect(logged().at(-1)).toBe('info: the chain moves again')
    expect(health.status()).toEqual({ reachable: true })
  })

  it('begins anew when an unreachable node answers and something else is wrong', () => {
    health.failed(outage)
    expect(health.status()).toMatchObject({ reachable: false, failing: { reason: 'gone' } })
    at(20)
    health.waits('no receipt')
    expect(health.status()).toEqual({ reachable: true })
    at(30)
    health.waits('no receipt')
    expect(health.status()).toEqual({ reachable: true, failing: { since: new Date(20_000), reason: 'no receipt' } })
  })

  it('is an alarm that is logged every minute until it is cleared', () => {
    for (const seconds of [0, 30, 60]) {
      at(seconds)
      health.alarmed('a final block was replaced')
    }
    expect(health.status()).toEqual({ reachable: true, alarm: 'a final block was replaced' })
    health.alarmed(undefined)
    expect(health.status()).toEqual({ reachable: true })
    expect(logged()).toEqual([
      ...Array(2).fill('error: the chain is stopped until an operator restarts it'),
      'info: the chain is followed again',
    ])
  })
})
