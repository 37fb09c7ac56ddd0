import { useState } from 'react'
import { whyTexts } from '../../look/texts.ts'
import { TextField } from '../parts/fields.tsx'
import { useDemoWallets, useOpenRequests } from './suggestions.ts'

export interface QuestionFormProps {
  readonly reference: string
  readonly wallet: string
  /** What the service finds wrong, by field. */
  readonly wrong: Readonly<Record<string, string>>
  readonly onAsk: (reference: string, wallet: string) => void
}

export function QuestionForm({ reference, wallet, wrong, onAsk }: QuestionFormProps) {
  const [typed, setTyped] = useState({ reference, wallet })
  const requests = useOpenRequests()
  const wallets = useDemoWallets()
  return (
    <form
      className="why-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onAsk(typed.reference.trim(), typed.wallet.trim())
      }}
    >
      <TextField
        label={whyTexts.reference}
        help={wrong.paymentReference === undefined ? whyTexts.referenceHelp : undefined}
        isMono
        autoCapitalize="off"
        value={typed.reference}
        wrong={wrong.paymentReference}
        suggestions={requests}
        onType={(value) => setTyped({ ...typed, reference: value })}
      />
      <TextField
        label={whyTexts.wallet}
        help={wrong.wallet === undefined ? whyTexts.walletHelp : undefined}
        isMono
        autoCapitalize="off"
        value={typed.wallet}
        wrong={wrong.wallet}
        suggestions={wallets}
        onType={(value) => setTyped({ ...typed, wallet: value })}
      />
      <button type="submit" className="button main">
        {whyTexts.ask}
      </button>
    </form>
  )
}
