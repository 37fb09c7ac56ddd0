import { useQuery } from '@tanstack/react-query'
import { type Waybill, WaybillCallError, type Webhook, Webhook_Kind } from '@waybill/client'
import { useState } from 'react'
import { webhooksTexts as texts } from '../../shared/texts.ts'
import { Button, Form, TextField, Ticks, textOf, textsOf } from '../parts/fields.tsx'
import { Answer, Empty, ErrorNotice, ShownOnce } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useAction, useWaybill } from '../parts/signed-in.tsx'
import { WebhookCard } from './webhook-card.tsx'

const REFRESH_MS = 2_000

type KindName = Exclude<keyof typeof Webhook_Kind, 'KIND_UNSPECIFIED'>
/** The kinds of events that can be sent. */
const kinds = Object.entries(texts.kindNames).filter(([name]) => name !== 'KIND_UNSPECIFIED')

export function WebhooksPage() {
  const waybill = useWaybill()
  const webhooks = useQuery({
    queryKey: ['webhooks'],
    queryFn: async ({ signal }) => (await waybill.listWebhooks({}, { signal, retries: 0 })).webhooks,
    refetchInterval: ({ state }) => state.data !== undefined && REFRESH_MS,
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
        <Answer query={webhooks} lines={6}>
          {(all) =>
            all.length === 0 && !isCreating ? (
              <Empty title={texts.none}>
                <p>{texts.noneSays}</p>
              </Empty>
            ) : (
              all.map((webhook) => <WebhookCard key={webhook.id} webhook={webhook} onSecret={setCreated} />)
            )
          }
        </Answer>
      </div>
    </Page>
  )
}

interface FormProps {
  readonly onCreated: (webhook: Webhook) => void
  readonly onLeave: () => void
}

function WebhookForm({ onCreated, onLeave }: FormProps) {
  const create = (waybill: Waybill, typed: FormData) =>
    waybill.createWebhook({
      url: textOf(typed, 'url'),
      kinds: typed.getAll('kinds').map((name) => Webhook_Kind[name as KindName]),
      ...textsOf(typed, ['filter', 'description']),
    })
  const { mutate, isPending, error } = useAction(['webhooks'], create, onCreated)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const wrongAt = (of: (name: string) => boolean) => violations.find(({ field }) => of(field))?.description
  const field = (name: keyof typeof texts.fields) => ({
    ...texts.fields[name],
    name,
    wrong: wrongAt((of) => of === name),
  })
  // A wrong value of the filter is named by its own name.
  const wrongFilter = wrongAt((of) => of !== 'url' && of !== 'description')
  return (
    // Without kinds there is nothing to send.
    <Form className="card stack narrow" onSend={(typed) => !isPending && typed.has('kinds') && mutate(typed)}>
      <h2>{texts.create}</h2>
      {error !== null && violations.length === 0 && <ErrorNotice error={error} />}
      <TextField {...field('url')} inputMode="url" maxLength={2_048} required autoFocus isMono />
      <Ticks legend={texts.kinds} name="kinds" options={kinds} ticked={kinds.map(([name]) => name)} />
      <TextField {...field('filter')} wrong={wrongFilter} maxLength={8_192} isMono />
      <TextField {...field('description')} />
      <div className="row">
        <Button text={texts.submit} kind="main" type="submit" aria-disabled={isPending} />
        <Button text={texts.leave} onClick={onLeave} />
      </div>
    </Form>
  )
}
