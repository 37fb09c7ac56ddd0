import { expect, it } from 'vitest'
import { silentLogger } from '../test/support/logs.ts'
import type { DemoRequests } from './history/demo-requests.ts'
import { createLivePayer } from './live-payer.ts'
import { DEMO_CHAINS } from './network/chain-specs.ts'
import type { DemoChain } from './network/network.ts'

it('the live payer pays every few minutes, also at night', () => {
  const chains = DEMO_CHAINS.map((spec) => ({ spec }) as DemoChain)
  const at = new Date('2026-02-01T03:00:00Z')
  const context = { requests: {} as DemoRequests, madeAtSec: at.getTime() / 1_000, now: () => at, logger: silentLogger }
  const payer = createLivePayer(chains, context)
  const waits = Array.from({ length: 100 }, () => payer.nextInMs() / 60_000)
  expect(Math.max(...waits)).toBeLessThanOrEqual(8)
})
