import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Key, Key_State, type KeyChange, KeyChange_Action } from '@waybill/client'
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

export function KeysPage() {
  const waybill = useWaybill()
  const cursor = useLocation().query.get('cursor')
  const listed = useQuery({
    queryKey: ['keys', cursor],
    queryFn: async ({ signal }) => {
      const listed = await waybill.listKeys(cursor === null ? { limit: ROWS } : { cursor }, { signal })
      return { ...listed, changes: (await waybill.listKeyChanges({}, { signal })).changes }
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
          {({ keys, changes, pagination }) => (
            <>
              {keys.length === 0 && open === undefined && (
                <Empty title={texts.none}>
                  <p>{texts.noneSays}</p>
                </Empty>
              )}
              {keys.length > 0 && <KeyTable keys={keys} onRotate={setOpen} />}
              <Paging pagination={pagination} />
              {changes.length > 0 && <Changes {...{ keys, changes }} />}
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

/** Who did what to which key: the last of it. */
function Changes({ keys, changes }: { keys: readonly Key[]; changes: readonly KeyChange[] }) {
  const named = (id: string) => {
    const hint = keys.find((key) => key.id === id)?.hint
    return hint === undefined ? <Copyable value={id} /> : <span className="mono">{hint}…</span>
  }
  return (
    <details>
      <summary>{texts.changes}</summary>
      <Table
        label={texts.changes}
        columns={texts.changeColumns}
        rows={changes
          .slice(0, 100)
          .map(({ at, action, keyId, madeBy }) => [
            <Time at={at} />,
            texts.actions[KeyChange_Action[action] as keyof typeof texts.actions],
            named(keyId),
            madeBy === undefined ? texts.byCommand : named(madeBy),
          ])}
        numbers={[6, 6]}
        name={2}
      />
    </details>
  )
}
