import { useId, useState } from 'react'
import { whyTexts } from '../../look/texts.ts'
import { type Suggestion, useDemoWallets, useOpenRequests } from './suggestions.ts'

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
        help={whyTexts.referenceHelp}
        value={typed.reference}
        wrong={wrong.paymentReference}
        suggestions={requests}
        onType={(value) => setTyped({ ...typed, reference: value })}
      />
      <TextField
        label={whyTexts.wallet}
        help={whyTexts.walletHelp}
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

interface TextFieldProps {
  readonly label: string
  readonly help: string
  readonly value: string
  readonly wrong: string | undefined
  readonly suggestions: readonly Suggestion[]
  readonly onType: (value: string) => void
}

/** The browser's own list of suggestions: it works by keyboard, on phones and for those who listen. */
function TextField({ label, help, value, wrong, suggestions, onType }: TextFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className="input mono"
        value={value}
        list={`${id}-list`}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        aria-invalid={wrong !== undefined}
        aria-describedby={`${id}-help`}
        onChange={(event) => onType(event.target.value)}
      />
      <datalist id={`${id}-list`}>
        {suggestions.map(({ value, says }) => (
          <option key={value} value={value}>
            {says}
          </option>
        ))}
      </datalist>
      <p id={`${id}-help`} className={wrong === undefined ? 'quiet small' : 'wrong'} role={wrong && 'alert'}>
        {wrong ?? help}
      </p>
    </div>
  )
}
