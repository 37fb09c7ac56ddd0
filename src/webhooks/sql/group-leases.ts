import type { Knex } from 'knex'
import { acquireLeases, type Lease } from '../../store/leases-repository.ts'
import { type Holding, shareGroups } from '../rules/share-groups.ts'

/** How long the groups of a killed process wait for another. They are renewed every two seconds. */
export const LEASE_MS = 8_000

const GROUP = 'webhooks:'
/** A process that sends holds such a lease too, so that the others count it. */
const SENDER = 'webhook-sender:'

/** The lease of a group of accounts. */
export function groupLease(group: number, owner: string): Lease {
  return { name: `${GROUP}${group}`, owner }
}

/** Says that this process sends, and takes its share of the groups. @returns those that it holds */
export async function holdGroups(knex: Knex, owner: string): Promise<number[]> {
  const { holdings, others } = await readHoldings(knex, owner)
  const { wanted, released } = shareGroups(owner, holdings, others + 1)
  const nameOf = (group: number) => groupLease(group, owner).name
  await knex('leases').where({ owner }).whereIn('name', released.map(nameOf)).delete()
  const held = await acquireLeases(knex, owner, [`${SENDER}${owner}`, ...wanted.map(nameOf)], LEASE_MS)
  return held.filter((name) => name.startsWith(GROUP)).map((name) => Number(name.slice(GROUP.length)))
}

/** Leaves the groups to others. */
export async function releaseGroups(knex: Knex, owner: string): Promise<void> {
  await knex('leases').where({ owner }).whereRaw(`(name like '${GROUP}%' or name like '${SENDER}%')`).delete()
}

/** Who holds which group, and how many other processes send. Forgets processes that ended long ago. */
async function readHoldings(knex: Knex, owner: string): Promise<{ holdings: Holding[]; others: number }> {
  const { rows } = await knex.raw<{ rows: { name: string; owner: string }[] }>(
    `with ended as (delete from leases where name like '${SENDER}%' and expires_at < clock_timestamp() - interval '1 hour')
     select name, owner from leases where (name like '${GROUP}%' or name like '${SENDER}%') and expires_at > clock_timestamp()`,
  )
  const groups = rows.filter(({ name }) => name.startsWith(GROUP))
  return {
    holdings: groups.map((each) => ({ group: Number(each.name.slice(GROUP.length)), owner: each.owner })),
    others: rows.filter((each) => each.name.startsWith(SENDER) && each.owner !== owner).length,
  }
}
