import type { PaymentRequest } from '@waybill/client'
import { useState } from 'react'
import { isPayable, stateOf } from '../../shared/request-state.ts'
import { requestTexts } from '../../shared/texts.ts'
import { Button, Form, TextField } from '../parts/fields.tsx'
import { Copyable, useCopy } from '../parts/shown-values.tsx'
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
  return (
    <section className="card stack" aria-labelledby="pay">
      <h2 id="pay">{texts.title}</h2>
      {key === undefined ? (
        <KeyField onKey={keep} />
      ) : (
        <>
          <p className={mayPay ? undefined : 'quiet'}>{mayPay ? texts.says : texts.ended}</p>
          <Ready link={linkTo(request.paymentReference, key)} mayPay={mayPay} />
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

function linkTo(paymentReference: string, key: string): string {
  return `${location.origin}/pay/${paymentReference}?key=${key}`
}

function Ready({ link, mayPay }: { link: string; mayPay: boolean }) {
  const { copy, copied } = useCopy(texts.copied)
  return (
    <>
      <p className="mono pay-link">{link}</p>
      <div className="row">
        <Button
          text={copied === link ? texts.copied : texts.copy}
          kind={mayPay ? 'main' : ''}
          onClick={() => void copy(link)}
        />
        <a className="button" href={link} target="_blank" rel="noreferrer">
          {texts.open} <span aria-hidden="true">↗</span>
        </a>
      </div>
    </>
  )
}

function KeyField({ onKey }: { onKey: (key: string) => void }) {
  const [typed, setTyped] = useState('')
  const [wrong, setWrong] = useState<string>()
  const send = () => {
    const key = typed.trim()
    if (key.startsWith('wb_')) setWrong(texts.secret)
    else if (/^wbp_[0-9A-Za-z]{40}$/.test(key)) onKey(key)
    else setWrong(texts.keyWrong)
  }
  return (
    <Form className="stack" onSend={send}>
      <TextField label={texts.keyLabel} help={texts.keyHelp} wrong={wrong} value={typed} onType={setTyped} isMono />
      <Button text={texts.keySave} type="submit" />
    </Form>
  )
}
