import { type Key, type Waybill, WaybillCallError } from '@waybill/client'
import { useState } from 'react'
import { keysTexts as texts } from '../../shared/texts.ts'
import { Button, Choice, FileField, Form, TextField } from '../parts/fields.tsx'
import { ErrorNotice } from '../parts/notices.tsx'
import { useAction } from '../parts/signed-in.tsx'

type Scope = keyof typeof texts.scopes
const scopes = Object.keys(texts.scopes) as Scope[]

const nothing = { note: '', expiresAt: '', origins: '', name: '', color: '', cornerRadius: '', rate: '', share: '' }
const fields: readonly string[] = [...Object.keys(nothing), 'logo']

/** What was left empty is left out. What is no number is refused by the service, in its words. */
function messageOf(
  { note, expiresAt, origins, name, color, cornerRadius, rate, share }: typeof nothing,
  chosen: readonly Scope[],
  isPublic: boolean,
) {
  const texts = isPublic ? { note, expiresAt, name, color } : { note, expiresAt, share }
  const given = Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''))
  if (!isPublic) return { ...given, ...numberOf('rate', rate), scopes: [...chosen] }
  const listed = origins.split(/[\s,]+/).filter((each) => each !== '')
  return { ...given, ...numberOf('cornerRadius', cornerRadius), origins: listed }
}

function numberOf(name: 'rate' | 'cornerRadius', text: string) {
  return text === '' ? {} : { [name]: /^\d{1,9}$/.test(text) ? Number(text) : -1 }
}

interface FormProps {
  readonly onCreated: (key: Key) => void
  readonly onLeave: () => void
}

/** What is wrong stands at its field, in the words of the service. */
export function KeyForm({ onCreated, onLeave }: FormProps) {
  const [kind, setKind] = useState('secret')
  const [typed, setTyped] = useState(nothing)
  const [chosen, setChosen] = useState<readonly Scope[]>(['payments:read', 'requests:read'])
  const isPublishable = kind === 'publishable'
  const [logo, setLogo] = useState<File>()
  const create = async (waybill: Waybill) => {
    const image = isPublishable && logo !== undefined ? { logo: new Uint8Array(await logo.arrayBuffer()) } : {}
    return waybill.createKey({ ...messageOf(typed, chosen, isPublishable), ...image })
  }
  const { mutate, isPending, error } = useAction(['keys'], create, onCreated)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const wrongWith = (name: string) => violations.find((each) => each.field === name)?.description
  const field = (name: keyof typeof nothing) => ({
    ...texts.fields[name],
    value: typed[name],
    onType: (value: string) => setTyped((before) => ({ ...before, [name]: value })),
    wrong: wrongWith(name),
  })
  const isSaid = violations.length > 0 && violations.every((each) => fields.includes(each.field))
  const isEmpty = isPublishable ? typed.origins.trim() === '' : chosen.length === 0
  const toggle = (scope: Scope) =>
    setChosen((before) => (before.includes(scope) ? before.filter((each) => each !== scope) : [...before, scope]))
  return (
    <Form className="card stack narrow" noValidate onSend={() => !isPending && !isEmpty && mutate()}>
      <h2>{texts.create}</h2>
      {error !== null && !isSaid && <ErrorNotice error={error} />}
      <Choice label={texts.kind} value={kind} options={texts.kinds} onChoose={setKind} />
      {isPublishable ? (
        <>
          <TextField {...field('origins')} maxLength={8_192} inputMode="url" required isMono />
          <TextField {...field('name')} />
          <FileField {...texts.logo} wrong={wrongWith('logo')} accept="image/*" onFile={setLogo} />
          <TextField {...field('color')} isMono />
          <TextField {...field('cornerRadius')} inputMode="numeric" />
        </>
      ) : (
        <>
          <fieldset className="stack gap-1">
            <legend>{texts.mayDo}</legend>
            {scopes.map((scope) => (
              <label key={scope} className="row gap-1">
                <input type="checkbox" checked={chosen.includes(scope)} onChange={() => toggle(scope)} />
                <span className="mono">{scope}</span> <span className="quiet small">{texts.scopes[scope]}</span>
              </label>
            ))}
          </fieldset>
          <TextField {...field('rate')} inputMode="numeric" />
          <TextField {...field('share')} inputMode="decimal" />
        </>
      )}
      <TextField {...field('note')} />
      <TextField {...field('expiresAt')} type="date" />
      <div className="row">
        <Button text={texts.submit} kind="main" type="submit" aria-disabled={isPending || isEmpty} />
        <Button text={texts.leave} onClick={onLeave} />
      </div>
    </Form>
  )
}
