import type { Knex } from 'knex'
import type { Meter } from '../../domain/telemetry/telemetry.ts'
import { raw, readRows } from '../../postgres/statement.ts'

const BACKLOG = {
  name: 'waybill_webhook_backlog_seconds',
  help: 'Age of the oldest change that a webhook is still to be sent, paused webhooks left out.',
} as const

/** Shows at each export how far webhooks are behind. */
export function measureBacklog(meter: Meter, knex: Knex): void {
  meter.observe([BACKLOG], async () => {
    const [oldest] = await readRows<{ seconds: number }>(knex, raw(OLDEST), undefined)
    return [[BACKLOG.name, oldest?.seconds ?? 0]]
  })
}

/** Changes of an account are numbered without gaps. What failed has a clock of its own, and counts from its change as well. */
const OLDEST = `
  select coalesce(extract(epoch from clock_timestamp() - least(
    (select min(c.at) from webhook_endpoints e join payment_changes c on c.account_id = e.account_id and c.change = e.position + 1
      where e.paused_at is null),
    (select min(d.changed_at) from parked_deliveries d join webhook_endpoints e on e.account_id = d.account_id and e.id = d.endpoint_id
      where e.paused_at is null)
  )), 0)::float8 as seconds`
