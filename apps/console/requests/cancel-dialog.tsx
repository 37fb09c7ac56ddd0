import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { PaymentRequest } from '@waybill/client'
import { useRef } from 'react'
import { requestTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { ErrorNotice } from '../parts/notices.tsx'
import { useWaybill } from '../parts/signed-in.tsx'

const { cancel: texts } = requestTexts

/** A button that asks first. The dialog is the browser's own: it holds the focus, closes on Escape and gives the focus back. */
export function CancelDialog({ request: { paymentReference } }: { request: PaymentRequest }) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const dialog = useRef<HTMLDialogElement>(null)
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: () => waybill.cancelPaymentRequest({ paymentReference }),
    onSuccess: async (cancelled) => {
      dialog.current?.close()
      queries.setQueryData(['request', paymentReference], cancelled)
      await queries.invalidateQueries({ queryKey: ['requests'] })
    },
  })
  const open = () => {
    reset()
    dialog.current?.showModal()
  }
  return (
    <>
      <Button text={texts.open} onClick={open} />
      <dialog ref={dialog} aria-labelledby="cancel-title">
        <div className="stack">
          <h2 id="cancel-title">{texts.title}</h2>
          <ul className="bullets">
            {texts.says.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {error !== null && <ErrorNotice error={error} />}
          <div className="row dialog-actions">
            <Button text={texts.keep} autoFocus onClick={() => dialog.current?.close()} />
            <Button
              text={isPending ? texts.busy : texts.confirm}
              look="danger"
              disabled={isPending}
              onClick={() => mutate()}
            />
          </div>
        </div>
      </dialog>
    </>
  )
}
