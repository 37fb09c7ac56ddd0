import type { PaymentRequest } from '@waybill/client'
import { useEffect, useRef, useState } from 'react'
import { requestTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { lastPlace } from '../parts/last-place.ts'
import { LinkButton } from '../parts/link.tsx'
import { Page } from '../parts/page.tsx'
import { PayLink } from './pay-link.tsx'
import { RequestForm } from './request-form.tsx'
import { Warnings } from './request-warnings.tsx'

const { create: texts } = requestTexts

export function NewRequestPage() {
  const [created, setCreated] = useState<PaymentRequest>()
  return (
    <Page title={texts.title} back={{ to: lastPlace('requests'), title: texts.back }}>
      {created === undefined ? (
        <RequestForm onCreated={setCreated} />
      ) : (
        <Created request={created} onAnother={() => setCreated(undefined)} />
      )}
    </Page>
  )
}

/** What to do with a request that has just been stored. */
function Created({ request, onAnother }: { request: PaymentRequest; onAnother: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <div className="stack narrow">
      <div className="notice good">
        <h2 ref={heading} tabIndex={-1}>
          {texts.done}
        </h2>
        <p>{request.warnings.length === 0 ? texts.doneLine : texts.doneInVain}</p>
      </div>
      <Warnings request={request} />
      <PayLink request={request} />
      <div className="row">
        <LinkButton to={`/requests/${request.paymentReference}`} text={texts.openIt} look="main" />
        <Button text={texts.another} onClick={onAnother} />
      </div>
    </div>
  )
}
