import type { PaymentRequest } from '@waybill/client'
import { useState } from 'react'
import { isPayable, stateOf } from '../../shared/request-state.ts'
import { requestTexts } from '../../shared/texts.ts'
import { Button, Form, TextField, textOf } from '../parts/fields.tsx'
import { Copyable, CopyButton } from '../parts/shown-values.tsx'
import { useSession } from '../parts/signed-in.tsx'

const { pay: texts, one } = requestTexts

/** Known to everybody who runs a demo, as its API key is. */
const DEMO_KEY = `wbp_${'demo'.repeat(10)}`
const STORED_AT = 'waybill.publishable-key'

/** What a merchant hands to the payer: the link of the checkout page, and the payment reference. */
export function PayLink({ request }: { request: PaymentRequest }) {
  const { isDemo } = useSession()
  const [key, setKey] = useState(() => (isDemo ? DEMO_KEY : (localStorage.getItem(STORED_AT) ?? undefined)))
  const keep = (typed: string | undefined) => {
    if (typed === undefined) localStorage.removeItem(STORED_AT)
    else localStorage.setItem(STORED_AT, typed)
    setKey(typed)
  }
  const mayPay = isPayable(stateOf(request))
  const link = `${location.origin}/pay/${request.paymentReference}?key=${key}`
  return (
    <section className="card stack" aria-labelledby="pay">
      <h2 id="pay">{texts.title}</h2>
      {key === undefined ? (
        <KeyField onKey={keep} />
      ) : (
        <>
          <p className={mayPay ? undefined : 'quiet'}>{mayPay ? texts.says : texts.ended}</p>
          <p className="mono pay-link">{link}</p>
          <div className="row">
            <CopyButton value={link} text={texts.copy} kind={mayPay ? 'main' : ''} />
            <a className="button" href={link} target="_blank" rel="noreferrer">
              {texts.open} <span aria-hidden="true">↗</span>
            </a>
          </div>
          {!isDemo && <Button text={texts.keyChange} kind="plain" onClick={() => keep(undefined)} />}
        </>
      )}
      <div>
        <h3>{one.fields.paymentReference}</h3>
        <Copyable value={request.paymentReference} whole />
      </div>
    </section>
  )
}

function KeyField({ onKey }: { onKey: (key: string) => void }) {
  const [wrong, setWrong] = useState<string>()
  const send = (typed: FormData) => {
    const key = textOf(typed, 'key')
    if (key.startsWith('wb_')) setWrong(texts.secret)
    else if (/^wbp_[0-9A-Za-z]{40}$/.test(key)) onKey(key)
    else setWrong(texts.keyWrong)
  }
  return (
    <Form className="stack" onSend={send}>
      <TextField label={texts.keyLabel} help={texts.keyHelp} wrong={wrong} name="key" isMono />
      <Button text={texts.keySave} type="submit" />
    </Form>
  )
}
