/** @jsxImportSource preact */
import { useEffect, useState } from 'preact/hooks'
import { payTexts } from './language.ts'
import { linksIntoApps } from './page-link.ts'
import { CopyButton } from './screen-parts.tsx'

/** A device that is held in the hand: it has wallets' apps, and nothing to scan its own screen with. */
const isPhone = () => matchMedia('(pointer: coarse)').matches

interface PhoneProps {
  /** Whether it is all that can be done here. */
  readonly isOpen: boolean
  /** The payment as an EIP-681 address, where one can express it. */
  readonly paymentUri: string | undefined
}

/** What leads to a wallet that this browser has not: on a phone into the browsers of wallets, elsewhere to the phone. */
export function PhoneWays({ isOpen, paymentUri }: PhoneProps) {
  const { phone: texts } = payTexts
  if (isPhone()) {
    return (
      <details class="phone" open={isOpen}>
        <summary>{texts.open}</summary>
        <ul class="stack gap-2">
          {linksIntoApps(location.href).map(({ wallet, href }) => (
            <li key={wallet}>
              <a class="button wallet" href={href}>
                {texts.openIn(wallet)}
              </a>
            </li>
          ))}
          {paymentUri !== undefined && (
            <li>
              <a class="button wallet" href={paymentUri}>
                {texts.send}
              </a>
            </li>
          )}
        </ul>
      </details>
    )
  }
  return (
    <details class="phone" open={isOpen}>
      <summary>{texts.scan}</summary>
      <p class="small">{texts.scanSays}</p>
      <QrCode text={location.href} says={texts.scan} />
      <CopyButton text={texts.copyLink} value={location.href} />
    </details>
  )
}

/** Modules of white around a code, without which cameras do not find it. */
const MARGIN = 4

function QrCode({ text, says }: { text: string; says: string }) {
  const [rows, setRows] = useState<readonly (readonly boolean[])[]>([])
  useEffect(() => {
    let isLeft = false
    // Few payers need it, so it comes when it is wanted.
    void import('qr').then(({ encodeQR }) => {
      if (!isLeft) setRows(encodeQR(text, 'raw', { ecc: 'medium', border: MARGIN }))
    })
    return () => {
      isLeft = true
    }
  }, [text])
  const dots = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  const size = Math.max(1, rows.length)
  return (
    <svg class="qr" role="img" aria-label={says} viewBox={`0 0 ${size} ${size}`}>
      <rect width={size} height={size} fill="#fff" />
      <path d={dots.join('')} fill="#000" />
    </svg>
  )
}
