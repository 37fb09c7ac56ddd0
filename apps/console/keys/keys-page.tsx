import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Key, Key_State, KeyChange_Action, type Waybill } from '@waybill/client'
import { useState } from 'react'
import { keysTexts as texts } from '../../shared/texts.ts'
import { announce } from '../parts/announcer.tsx'
import { Paging, Table } from '../parts/blocks.tsx'
import { Button, Choice, Form, textOf } from '../parts/fields.tsx'
import { useLocation } from '../parts/location.ts'
import { Answer, Empty, ErrorNotice, ShownOnce } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Badge, Copyable, Time } from '../parts/shown-values.tsx'
import { useAction, useWaybill } from '../parts/signed-in.tsx'
import { KeyForm } from './key-form.tsx'

const ROWS = 100
const pageAt = (cursor: string | null) => (cursor === null ? { limit: ROWS } : { cursor })

export function KeysPage() {
  const waybill = useWaybill()
  const { query } = useLocation()
  const [cursor, changesCursor] = [query.get('cursor'), query.get('changes')]
  const listed = useQuery({
    queryKey: ['keys', cursor, changesCursor],
    queryFn: async ({ signal }) => {
      const listed = await waybill.listKeys(pageAt(cursor), { signal })
      return { ...listed, changed: await waybill.listKeyChanges(pageAt(changesCursor), { signal }) }
    },
    placeholderData: keepPreviousData,
  })
  /** The form that is open: of a new key, or of one that is rotated. */
  const [open, setOpen] = useState<'create' | Key>()
  const [shown, setShown] = useState<Key>()
  const leave = () => setOpen(undefined)
  const onShown = (key: Key) => {
    setShown(key)
    leave()
  }
  return (
    <Page
      title={texts.title}
      actions={open !== 'create' && <Button text={texts.create} kind="main" onClick={() => setOpen('create')} />}
    >
      <div className="stack gap-5">
        <p className="quiet">{texts.lead}</p>
        {open === 'create' && <KeyForm onCreated={onShown} onLeave={leave} />}
        {typeof open === 'object' && <RotateForm key={open.id} old={open} onRotated={onShown} onLeave={leave} />}
        {shown?.key !== undefined && <NewKey isForPages={shown.origins.length > 0} value={shown.key} />}
        <Answer query={listed} lines={6}>
          {({ keys, changed, pagination }) => (
            <>
              {keys.length === 0 && open === undefined && (
                <Empty title={texts.none}>
                  <p>{texts.noneSays}</p>
                </Empty>
              )}
              {keys.length > 0 && <KeyTable keys={keys} onRotate={setOpen} />}
              <Paging pagination={pagination} />
              {changed.changes.length > 0 && <Changes {...{ keys, changed }} isOpen={changesCursor !== null} />}
            </>
          )}
        </Answer>
      </div>
    </Page>
  )
}

/** Where the key goes stands beside it, since it is gone when the page is left. */
function NewKey({ isForPages, value }: { isForPages: boolean; value: string }) {
  const page = `${location.origin}/pay/PAYMENT_REFERENCE?key=${value}`
  return (
    <ShownOnce title={texts.shown} says={isForPages ? texts.putPublic : texts.putSecret} value={value}>
      <p className="small">{isForPages ? texts.usePublic : texts.useSecret}</p>
      <Copyable value={isForPages ? page : `curl ${location.origin}/payments -H 'x-api-key: ${value}'`} whole />
    </ShownOnce>
  )
}

interface RotateProps {
  readonly old: Key
  readonly onRotated: (key: Key) => void
  readonly onLeave: () => void
}

function RotateForm({ old: { id, hint }, onRotated, onLeave }: RotateProps) {
  const rotate = useAction(
    ['keys'],
    (calls, overlapSeconds: number) => calls.rotateKey({ id, overlapSeconds }),
    onRotated,
  )
  return (
    <Form
      className="card stack narrow"
      onSend={(typed) => !rotate.isPending && rotate.mutate(Number(textOf(typed, 'overlap')))}
    >
      <h2>{texts.rotateTitle(hint)}</h2>
      <p>{texts.rotateSays}</p>
      <Choice label={texts.overlap} name="overlap" defaultValue="86400" options={texts.overlaps} />
      {rotate.error !== null && <ErrorNotice error={rotate.error} />}
      <div className="row">
        <Button text={texts.rotateNow} kind="main" type="submit" aria-disabled={rotate.isPending} />
        <Button text={texts.leave} onClick={onLeave} />
      </div>
    </Form>
  )
}

function KeyTable({ keys, onRotate }: { keys: readonly Key[]; onRotate: (key: Key) => void }) {
  const onRevoked = () => announce(texts.revoked)
  const revoke = useAction(['keys'], (waybill, id: string) => waybill.revokeKey({ id }), onRevoked)
  const actionsFor = (key: Key) => {
    if (key.state !== Key_State.IN_FORCE) return <Badge tone="quiet">{texts.states[key.state]}</Badge>
    const ask = () => confirm(texts.revokeSure(key.hint)) && revoke.mutate(key.id)
    return (
      <span className="row gap-1">
        {key.replacedBy === undefined ? (
          <Button text={texts.rotate} aria-label={texts.rotateTitle(key.hint)} onClick={() => onRotate(key)} />
        ) : (
          <Badge tone="warn">{texts.replaced}</Badge>
        )}
        <Button text={texts.revoke} kind="danger" aria-label={texts.revokeOne(key.hint)} onClick={ask} />
      </span>
    )
  }
  return (
    <>
      {revoke.error !== null && <ErrorNotice error={revoke.error} />}
      <Table
        label={texts.title}
        columns={texts.columns}
        rows={keys.map((key) => [
          <span>
            <span className="mono">{key.hint}…</span> <span className="quiet">{key.note ?? key.shop?.name}</span>
          </span>,
          key.origins.length > 0 ? texts.pagesOf(key.origins.join(', ')) : key.scopes.join(', '),
          key.rate === undefined ? texts.ratePages : texts.rate(key.rate),
          key.lastUsedAt === undefined ? texts.never : <Time at={key.lastUsedAt} distance />,
          (key.revokedAt ?? key.expiresAt) === undefined ? texts.never : <Time at={key.revokedAt ?? key.expiresAt} />,
          actionsFor(key),
        ])}
        numbers={[6, 6]}
        name={0}
      />
    </>
  )
}

interface ChangesProps {
  readonly keys: readonly Key[]
  readonly changed: Awaited<ReturnType<Waybill['listKeyChanges']>>
  readonly isOpen: boolean
}

/** Who did what to which key. */
function Changes({ keys, changed: { changes, pagination }, isOpen }: ChangesProps) {
  const named = (id: string) => {
    const hint = keys.find((key) => key.id === id)?.hint
    return hint === undefined ? <Copyable value={id} /> : <span className="mono">{hint}…</span>
  }
  return (
    <details open={isOpen}>
      <summary>{texts.changes}</summary>
      <Table
        label={texts.changes}
        columns={texts.changeColumns}
        rows={changes.map(({ at, action, keyId, madeBy }) => [
          <Time at={at} />,
          texts.actions[KeyChange_Action[action] as keyof typeof texts.actions],
          named(keyId),
          madeBy === undefined ? texts.byCommand : named(madeBy),
        ])}
        numbers={[6, 6]}
        name={2}
      />
      <Paging pagination={pagination} label={texts.changePages} parameter="changes" />
    </details>
  )
}
