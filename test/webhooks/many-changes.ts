import { expect } from 'vitest'
import { type Answer, type Received, type Receiver, type Stage, startReceiver } from './webhook-stage.ts'

/** Receivers that answer slowly, wrongly, twice the same, or not at all, by what comes. */
export interface Behaviour {
  readonly name: string
  readonly answer: (got: Received, nth: number) => Answer | Promise<Answer>
}

const failures = new Map<string, number>()
/** Fails the first attempts of a share of deliveries. */
function failFirst(share: number, how: Answer): Behaviour['answer'] {
  return ({ headers, path }) => {
    const id = JSON.stringify([path, headers['webhook-id'], how])
    const seen = failures.get(id) ?? 0
    failures.set(id, seen + 1)
    return seen === 0 && Number.parseInt(String(headers['webhook-id']).slice(4, 10), 16) % 1_000 < share * 1_000
      ? how
      : 204
  }
}

export const behaviours: readonly Behaviour[] = [
  { name: 'well', answer: () => 204 },
  {
    name: 'slowly',
    answer: async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return 200
    },
  },
  { name: 'wrongly', answer: failFirst(0.02, 500) },
  { name: 'breaking off after it has read', answer: failFirst(0.02, 'break') },
  { name: 'sometimes not at all', answer: failFirst(0.002, 'never') },
]

/** The changes of a payment that a receiver got, in the order of their first arrival. */
export function checkReceived({ received }: Receiver, expected: ReadonlyMap<string, readonly string[]>): void {
  const first = new Map<string, Received>()
  for (const got of received) {
    const id = String(got.headers['webhook-id'])
    const known = first.get(id)
    if (known === undefined) first.set(id, got)
    else expect(got.body).toBe(known.body)
  }
  const byPayment = Map.groupBy(first.values(), ({ data }) => data.id)
  const seen = new Map([...byPayment].map(([id, list]) => [id, list.map(({ type }) => type)]))
  expect(seen.size).toBe(expected.size)
  for (const [id, types] of expected) expect([id, seen.get(id)]).toEqual([id, types])
}

/** Starts a receiver of each kind with its endpoint. */
export async function startAll(stage: Stage, some = behaviours): Promise<Receiver[]> {
  const receivers = await Promise.all(some.map(({ answer }) => startReceiver(answer)))
  for (const { url } of receivers)
    await stage.create({ url, kinds: ['payment.added', 'payment.updated', 'payment.removed'] })
  return receivers
}
