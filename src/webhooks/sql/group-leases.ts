import type { Knex } from 'knex'
import { acquireLease, type Lease, releaseLease, renewLease } from '../../store/leases-repository.ts'
import { type Holding, shareGroups } from '../rules/share-groups.ts'

/** How long the groups of a killed process wait for another. They are renewed every two seconds. */
export const LEASE_MS = 8_000

const GROUP = 'webhooks:'
const SENDER = 'webhook-sender:'

/** The lease of a group of accounts. */
export function groupLease(group: number, owner: string): Lease {
  return { name: `${GROUP}${group}`, owner }
}

/** Says that this process sends, and takes its share of the groups. @returns those that it holds */
export async function holdGroups(knex: Knex, owner: string): Promise<number[]> {
  await acquireLease(knex, { name: `${SENDER}${owner}`, owner }, LEASE_MS)
  const { holdings, alive } = await readHoldings(knex)
  const { kept, taken, released } = shareGroups(owner, holdings, alive)
  for (const group of released) await releaseLease(knex, groupLease(group, owner))
  const held: number[] = []
  for (const group of kept) if (await renewLease(knex, groupLease(group, owner), LEASE_MS)) held.push(group)
  for (const group of taken) if (await acquireLease(knex, groupLease(group, owner), LEASE_MS)) held.push(group)
  return held
}

/** Leaves the groups to others. */
export async function releaseGroups(knex: Knex, owner: string): Promise<void> {
  await knex('leases')
    .where({ owner })
    .where((of) => of.whereLike('name', `${GROUP}%`).orWhereLike('name', `${SENDER}%`))
    .delete()
}

async function readHoldings(knex: Knex): Promise<{ holdings: Holding[]; alive: number }> {
  const { rows } = await knex.raw<{ rows: { name: string; owner: string }[] }>(
    `select name, owner from leases where (name like '${GROUP}%' or name like '${SENDER}%') and expires_at > clock_timestamp()`,
  )
  const groups = rows.filter(({ name }) => name.startsWith(GROUP))
  return {
    holdings: groups.map(({ name, owner }) => ({ group: Number(name.slice(GROUP.length)), owner })),
    alive: rows.length - groups.length,
  }
}
