/** @jsxImportSource preact */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { formatOnce } from '../shared/format-time.ts'
import type { ConfirmRequest, ToConfirm } from './demo-wallet-provider.ts'
import { Button } from './screen-parts.tsx'

export interface Asked extends ToConfirm {
  readonly answer: (isConfirmed: boolean) => void
}

/** Asks in a dialog what a demo's wallet would ask in its own window. */
export function useConfirm(): { readonly confirm: ConfirmRequest; readonly asked: Asked | undefined } {
  const [asked, setAsked] = useState<Asked>()
  const confirm = useCallback<ConfirmRequest>(
    (toConfirm) =>
      new Promise((resolve) => {
        const answer = (isConfirmed: boolean) => {
          setAsked(undefined)
          resolve(isConfirmed)
        }
        setAsked({ ...toConfirm, answer })
      }),
    [],
  )
  return { confirm, asked }
}

interface ConfirmProps {
  readonly asked: Asked
  /** What the transaction does, in words. */
  readonly does: string | undefined
}

/** In English, as is what the demo says of its wallets. */
export function ConfirmDialog({ asked: { wallet, calls, answer }, does }: ConfirmProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => element.current?.showModal(), [])
  const refuse = (event: Event) => {
    // A dialog that closes itself gives the focus back to a button that is gone.
    event.preventDefault()
    answer(false)
  }
  return (
    <dialog ref={element} aria-labelledby="confirm-title" onCancel={refuse}>
      <p class="quiet small">Demo wallet</p>
      <h2 id="confirm-title">The wallet “{wallet}” asks: sign this?</h2>
      {does !== undefined && <p class="does">{does}</p>}
      {calls.map(({ to, value = '0x0', data = '0x' }, index) => (
        <dl key={index} class="facts small">
          <dt>To</dt>
          <dd class="mono">{to}</dd>
          <dt>Coins</dt>
          <dd class="number">{coins(value)}</dd>
          <dt>Data</dt>
          <dd class="mono">{data.length > 66 ? `${data.slice(0, 66)}…` : data}</dd>
        </dl>
      ))}
      <div class="row apart">
        <Button text="Decline" onClick={() => answer(false)} />
        <Button text="Confirm" kind="main" onClick={() => answer(true)} />
      </div>
    </dialog>
  )
}

/** Wei in hex as coins. Intl reads a decimal with an exponent exactly. */
function coins(value: string): string {
  const amount = `${BigInt(value)}e-18` as Intl.StringNumericLiteral
  return formatOnce(Intl.NumberFormat, undefined, { maximumFractionDigits: 18 }).format(amount)
}
