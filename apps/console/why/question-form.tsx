import { useState } from 'react'
import { whyTexts } from '../../shared/texts.ts'
import { Button, Form, TextField } from '../parts/fields.tsx'
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
    <Form className="why-form" noValidate onSend={() => onAsk(typed.reference.trim(), typed.wallet.trim())}>
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
      <Button text={whyTexts.ask} look="main" type="submit" />
    </Form>
  )
}
