import { useQuery } from '@tanstack/react-query'
import {
  type Webhook,
  Webhook_Kind,
  Webhook_PauseReason,
  Webhook_State,
  type WebhookDelivery,
  WebhookDelivery_State,
} from '@waybill/client'
import { useState } from 'react'
import { webhooksTexts as texts } from '../../shared/texts.ts'
import { announce } from '../parts/announcer.tsx'
import { Facts, Table } from '../parts/blocks.tsx'
import { Button, Form, TextField, textOf } from '../parts/fields.tsx'
import { Link } from '../parts/link.tsx'
import { Answer, ErrorNotice } from '../parts/notices.tsx'
import { Badge, Copyable, Time, type Tone } from '../parts/shown-values.tsx'
import { useAction, useWaybill } from '../parts/signed-in.tsx'

interface CardProps {
  readonly webhook: Webhook
  /** Called with the answer that has a new secret. */
  readonly onSecret: (webhook: Webhook) => void
}

const nameOf = (kind: Webhook_Kind) => texts.kindNames[Webhook_Kind[kind] as keyof typeof texts.kindNames]

/** One endpoint: how it does, what can be done with it, and its deliveries. */
export function WebhookCard({ webhook, onSecret }: CardProps) {
  const { id, url, description, kinds, filter, position, lastChange, parked, lostChanges, createdAt } = webhook
  const heading = `webhook-${id}`
  const behind = Number(lastChange - position)
  return (
    <section className="card stack" aria-labelledby={heading}>
      <header className="row gap-3">
        <h2 id={heading}>{url}</h2>
        <State webhook={webhook} />
      </header>
      <Facts
        facts={[
          description === undefined ? undefined : [texts.facts.note, description],
          [texts.facts.id, <Copyable value={id} whole />],
          [texts.facts.kinds, kinds.map(nameOf).join(', ')],
          filter === undefined ? undefined : [texts.facts.filter, <span className="mono">{filter}</span>],
          [texts.facts.created, <Time at={createdAt} />],
          [texts.facts.progress, texts.progress(behind, parked)],
          lostChanges === 0n ? undefined : [texts.facts.lost, texts.lost(String(lostChanges))],
        ]}
      />
      <Actions webhook={webhook} onSecret={onSecret} />
      <Deliveries webhook={webhook} />
    </section>
  )
}

function State({ webhook: { state, pauseReason, pausedAt } }: Pick<CardProps, 'webhook'>) {
  if (state === Webhook_State.ACTIVE) return <Badge tone="good">{texts.active}</Badge>
  const reason = Webhook_PauseReason[pauseReason ?? 0] as keyof typeof texts.pauseReasons
  return (
    <span className="row gap-1">
      <Badge tone={pauseReason === Webhook_PauseReason.BY_ACCOUNT ? 'quiet' : 'bad'}>{texts.paused}</Badge>
      <span className="small">
        {texts.pauseReasons[reason]} <Time at={pausedAt} distance />
      </span>
    </span>
  )
}

function Actions({ webhook, onSecret }: CardProps) {
  const { id, state } = webhook
  const [said, setSaid] = useState<string>()
  const [isReplaying, setReplaying] = useState(false)
  const say = (text: string) => {
    setSaid(text)
    announce(text)
  }
  const isPaused = state === Webhook_State.PAUSED
  const test = useAction(
    ['webhooks'],
    (waybill) => waybill.testWebhook({ id }),
    ({ failure, httpStatus }) => say(failure === undefined ? texts.testGood(httpStatus ?? 0) : texts.testBad(failure)),
  )
  const toggle = useAction(
    ['webhooks'],
    (waybill) => waybill.updateWebhook({ id, paused: !isPaused }),
    () => say(isPaused ? texts.resumed : texts.pausedNow),
  )
  const rotate = useAction(['webhooks'], (waybill) => waybill.rotateWebhookSecret({ id }), onSecret)
  const remove = useAction(
    ['webhooks'],
    (waybill) => waybill.deleteWebhook({ id }),
    () => announce(texts.removed),
  )
  const error = [test, toggle, rotate, remove].find((each) => each.error !== null)?.error
  return (
    <div className="stack gap-2">
      <div className="row">
        <Button text={texts.test} onClick={() => test.mutate()} aria-disabled={test.isPending} />
        <Button text={isPaused ? texts.resume : texts.pause} onClick={() => toggle.mutate()} />
        <Button text={texts.replay} onClick={() => setReplaying(!isReplaying)} aria-expanded={isReplaying} />
        <Button text={texts.rotate} onClick={() => confirm(texts.rotateSure) && rotate.mutate()} />
        <Button text={texts.remove} kind="danger" onClick={() => confirm(texts.removeSure) && remove.mutate()} />
      </div>
      {said !== undefined && <p className="small">{said}</p>}
      {isReplaying && <Replay id={id} onDone={() => (setReplaying(false), say(texts.replayed))} />}
      {error !== undefined && error !== null && <ErrorNotice error={error} />}
    </div>
  )
}

function Replay({ id, onDone }: { id: string; onDone: () => void }) {
  const replay = useAction(
    ['webhooks'],
    (waybill, from: string) => waybill.replayWebhook({ id, fromTime: new Date(from).toISOString() }),
    onDone,
  )
  const send = (typed: FormData) => typed.get('from') !== '' && replay.mutate(textOf(typed, 'from'))
  return (
    <Form className="row" onSend={send}>
      <TextField {...texts.replayFrom} name="from" type="datetime-local" wrong={replay.error?.message} />
      <Button text={texts.replayNow} type="submit" kind="main" />
    </Form>
  )
}

const REFRESH_MS = 3_000
const tones: Readonly<Record<WebhookDelivery_State, Tone>> = {
  [WebhookDelivery_State.STATE_UNSPECIFIED]: 'quiet',
  [WebhookDelivery_State.DELIVERED]: 'good',
  [WebhookDelivery_State.RETRYING]: 'bad',
  [WebhookDelivery_State.WAITING]: 'warn',
}

function Deliveries({ webhook: { id, url } }: Pick<CardProps, 'webhook'>) {
  const waybill = useWaybill()
  const deliveries = useQuery({
    queryKey: ['webhooks', id, 'deliveries'],
    queryFn: async ({ signal }) => (await waybill.listWebhookDeliveries({ id }, { signal })).deliveries,
    refetchInterval: REFRESH_MS,
  })
  return (
    <Answer query={deliveries} lines={3}>
      {(all) =>
        all.length === 0 ? (
          <p className="quiet small">{texts.noDeliveries}</p>
        ) : (
          <Table
            label={texts.deliveriesOf(url)}
            columns={texts.columns}
            rows={all
              .slice(0, 20)
              .map((delivery) => [
                <Badge tone={tones[delivery.state]}>
                  {texts.states[WebhookDelivery_State[delivery.state] as keyof typeof texts.states]}
                </Badge>,
                nameOf(delivery.kind),
                <Resource delivery={delivery} />,
                <Time at={delivery.changedAt} />,
                delivery.failure ?? (delivery.httpStatus === undefined ? '' : texts.answered(delivery.httpStatus)),
                delivery.nextAttemptAt === undefined ? '' : <Time at={delivery.nextAttemptAt} />,
                String(delivery.attempts),
              ])}
            numbers={[6, 6]}
            name={1}
          />
        )
      }
    </Answer>
  )
}

function Resource({ delivery: { kind, resourceId } }: { delivery: WebhookDelivery }) {
  const isThere = kind === Webhook_Kind.PAYMENT_ADDED || kind === Webhook_Kind.PAYMENT_UPDATED
  return isThere ? (
    <Link to={`/payments/${resourceId}`}>{resourceId.slice(0, 8)}</Link>
  ) : (
    <Copyable value={resourceId} />
  )
}
