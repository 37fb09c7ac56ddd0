import { useQuery } from '@tanstack/react-query'
import { type Waybill, WaybillCallError, type Webhook, Webhook_Kind } from '@waybill/client'
import { useState } from 'react'
import { webhooksTexts as texts } from '../../shared/texts.ts'
import { Button, Form, TextField } from '../parts/fields.tsx'
import { Empty, ErrorNotice, ShownOnce, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { missingScope } from '../parts/scope-notice.tsx'
import { useAction, useWaybill } from '../parts/signed-in.tsx'
import { WebhookCard } from './webhook-card.tsx'

const REFRESH_MS = 2_000

/** The kinds of events that can be sent. */
const kinds = Object.values(Webhook_Kind).filter(
  (kind): kind is Webhook_Kind => typeof kind === 'number' && kind !== Webhook_Kind.KIND_UNSPECIFIED,
)

export function WebhooksPage() {
  const waybill = useWaybill()
  const webhooks = useQuery({
    queryKey: ['webhooks'],
    queryFn: async ({ signal }) => (await waybill.listWebhooks({}, { signal, retries: 0 })).webhooks,
    refetchInterval: ({ state }) => (missingScope(state.error) === undefined ? REFRESH_MS : false),
  })
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<Webhook>()
  const onCreated = (webhook: Webhook) => {
    setCreated(webhook)
    setCreating(false)
  }
  return (
    <Page
      title={texts.title}
      actions={!isCreating && <Button text={texts.create} kind="main" onClick={() => setCreating(true)} />}
    >
      <div className="stack gap-5">
        <p className="quiet">{texts.lead}</p>
        {isCreating && <WebhookForm onCreated={onCreated} onLeave={() => setCreating(false)} />}
        {created?.secret !== undefined && (
          <ShownOnce title={texts.secret} says={texts.secretSays} value={created.secret} />
        )}
        {webhooks.error !== null && <ErrorNotice error={webhooks.error} onRetry={() => void webhooks.refetch()} />}
        {webhooks.data === undefined && webhooks.error === null && <Waiting lines={6} />}
        {webhooks.data?.length === 0 && !isCreating && (
          <Empty title={texts.none}>
            <p>{texts.noneSays}</p>
          </Empty>
        )}
        {webhooks.data?.map((webhook) => (
          <WebhookCard key={webhook.id} webhook={webhook} onSecret={setCreated} />
        ))}
      </div>
    </Page>
  )
}

interface FormProps {
  readonly onCreated: (webhook: Webhook) => void
  readonly onLeave: () => void
}

/** What is wrong stands at its field, in the words of the service. */
function WebhookForm({ onCreated, onLeave }: FormProps) {
  const [typed, setTyped] = useState({ url: '', filter: '', description: '' })
  const [chosen, setChosen] = useState<readonly Webhook_Kind[]>(kinds)
  const create = (waybill: Waybill) => {
    const { url, filter, description } = typed
    const more = { ...(filter !== '' && { filter }), ...(description !== '' && { description }) }
    return waybill.createWebhook({ url: url.trim(), kinds: [...chosen], ...more })
  }
  const { mutate, isPending, error } = useAction(['webhooks'], create, onCreated)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  // A wrong value of the filter is named by its own name.
  const isElsewhere = (name: string) => name !== 'url' && name !== 'description'
  const wrongAt = (of: (name: string) => boolean) => violations.find(({ field }) => of(field))?.description
  const field = (name: keyof typeof typed) => ({
    ...texts.fields[name],
    value: typed[name],
    onType: (value: string) => setTyped((before) => ({ ...before, [name]: value })),
    wrong: wrongAt(name === 'filter' ? isElsewhere : (given) => given === name),
  })
  const toggle = (kind: Webhook_Kind) =>
    setChosen((before) => (before.includes(kind) ? before.filter((each) => each !== kind) : [...before, kind]))
  return (
    <Form className="card stack narrow" noValidate onSend={() => !isPending && chosen.length > 0 && mutate()}>
      <h2>{texts.create}</h2>
      {error !== null && violations.length === 0 && <ErrorNotice error={error} />}
      <TextField {...field('url')} inputMode="url" maxLength={2_048} required autoFocus isMono />
      <fieldset className="stack gap-1">
        <legend>{texts.kinds}</legend>
        {kinds.map((kind) => (
          <label key={kind} className="row gap-1">
            <input type="checkbox" checked={chosen.includes(kind)} onChange={() => toggle(kind)} />
            {texts.kindNames[Webhook_Kind[kind] as keyof typeof texts.kindNames]}
          </label>
        ))}
      </fieldset>
      <TextField {...field('filter')} maxLength={8_192} isMono />
      <TextField {...field('description')} />
      <div className="row">
        <Button text={texts.submit} kind="main" type="submit" aria-disabled={isPending || chosen.length === 0} />
        <Button text={texts.leave} onClick={onLeave} />
      </div>
    </Form>
  )
}
