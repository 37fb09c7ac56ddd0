import { type Key, type Waybill, WaybillCallError } from '@waybill/client'
import { useState } from 'react'
import { keysTexts as texts } from '../../shared/texts.ts'
import { Button, Choice, Form, TextField, Ticks, textOf, textsOf } from '../parts/fields.tsx'
import { ErrorNotice } from '../parts/notices.tsx'
import { useAction } from '../parts/signed-in.tsx'

const scopes = Object.entries(texts.scopes).map(
  ([scope, says]) =>
    [
      scope,
      <>
        <span className="mono">{scope}</span> <span className="quiet small">{says}</span>
      </>,
    ] as const,
)

/** What is no number is refused by the service, in its words. */
async function create(waybill: Waybill, typed: FormData): Promise<Key> {
  const number = (name: 'rate' | 'cornerRadius') => {
    const text = textOf(typed, name)
    return text === '' ? {} : { [name]: /^\d{1,9}$/.test(text) ? Number(text) : -1 }
  }
  const logo = typed.get('logo')
  return waybill.createKey({
    ...textsOf(typed, ['note', 'expiresAt', 'share', 'name', 'color']),
    ...number('rate'),
    ...number('cornerRadius'),
    scopes: typed.getAll('scopes').map(String),
    origins: textOf(typed, 'origins')
      .split(/[\s,]+/)
      .filter((each) => each !== ''),
    ...(logo instanceof File && logo.size > 0 && { logo: new Uint8Array(await logo.arrayBuffer()) }),
  })
}

interface FormProps {
  readonly onCreated: (key: Key) => void
  readonly onLeave: () => void
}

export function KeyForm({ onCreated, onLeave }: FormProps) {
  const [kind, setKind] = useState('secret')
  const { mutate, isPending, error } = useAction(['keys'], create, onCreated)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const field = (name: keyof typeof texts.fields) => ({
    ...texts.fields[name],
    name,
    wrong: violations.find((each) => each.field === name)?.description,
  })
  const isSaid = violations.length > 0 && violations.every((each) => each.field in texts.fields)
  return (
    <Form className="card stack narrow" onSend={(typed) => !isPending && mutate(typed)}>
      <h2>{texts.create}</h2>
      {error !== null && !isSaid && <ErrorNotice error={error} />}
      <Choice label={texts.kind} value={kind} options={texts.kinds} onChoose={setKind} />
      {kind === 'publishable' ? (
        <>
          <TextField {...field('origins')} maxLength={8_192} inputMode="url" required isMono />
          <TextField {...field('name')} />
          <TextField {...field('logo')} type="file" accept="image/*" />
          <TextField {...field('color')} isMono />
          <TextField {...field('cornerRadius')} inputMode="numeric" />
        </>
      ) : (
        <>
          <Ticks legend={texts.mayDo} name="scopes" options={scopes} ticked={['payments:read', 'requests:read']} />
          <TextField {...field('rate')} inputMode="numeric" />
          <TextField {...field('share')} inputMode="decimal" />
        </>
      )}
      <TextField {...field('note')} />
      <TextField {...field('expiresAt')} type="date" />
      <div className="row">
        <Button text={texts.submit} kind="main" type="submit" aria-disabled={isPending} />
        <Button text={texts.leave} onClick={onLeave} />
      </div>
    </Form>
  )
}
