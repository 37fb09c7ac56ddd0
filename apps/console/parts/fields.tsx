/** Forms: their fields and buttons. */
import { type ComponentProps, type FormEvent, useId } from 'react'

/** Enter in a field and the button that submits do the same; no page is loaded. */
export function Form({ onSend, ...rest }: ComponentProps<'form'> & { onSend: () => void }) {
  const send = (event: FormEvent) => {
    event.preventDefault()
    onSend()
  }
  return <form {...rest} onSubmit={send} />
}

interface ButtonProps extends ComponentProps<'button'> {
  readonly text: string
  /** What sets it apart from others: `main`, `plain`, `danger`. */
  readonly kind?: string
}

export function Button({ text, kind = '', ...rest }: ButtonProps) {
  return (
    <button type="button" className={`button ${kind}`} {...rest}>
      {text}
    </button>
  )
}

export interface SuggestedValue {
  readonly value: string
  /** What it means, where the value does not say. */
  readonly says?: string
}

export interface TextFieldProps extends Omit<ComponentProps<'input'>, 'id' | 'list' | 'className' | 'onChange'> {
  readonly label: string
  readonly help?: string | undefined
  readonly wrong: string | undefined
  /** What is wrong is said as a whole beside the form. */
  readonly isSaidElsewhere?: boolean
  readonly isMono?: boolean
  readonly value: string
  readonly onType: (value: string) => void
  readonly suggestions?: readonly SuggestedValue[]
}

type FieldProps = Omit<TextFieldProps, 'value' | 'onType'>

interface FileFieldProps extends FieldProps {
  readonly onFile: (file: File | undefined) => void
}

/** Suggestions are the browser's own list: it works by keyboard, on phones and for those who listen. */
export function TextField(props: FieldProps & Partial<TextFieldProps>) {
  const { label, help, wrong, isSaidElsewhere = false, isMono = false, onType, suggestions = [], ...input } = props
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
        {...input}
        id={id}
        className={isMono ? 'input mono' : 'input'}
        list={suggestions.length === 0 ? undefined : `${id}-list`}
        aria-invalid={wrong !== undefined}
        aria-describedby={`${id}-wrong ${id}-help`}
        onChange={(event) => onType?.(event.target.value)}
      />
      {suggestions.length > 0 && (
        <datalist id={`${id}-list`}>
          {suggestions.map(({ value, says }) => (
            <option key={value} value={value}>
              {says}
            </option>
          ))}
        </datalist>
      )}
      {wrong !== undefined && (
        <p id={`${id}-wrong`} className="wrong" role={isSaidElsewhere ? undefined : 'alert'}>
          {wrong}
        </p>
      )}
      {help !== undefined && (
        <p id={`${id}-help`} className="quiet small">
          {help}
        </p>
      )}
    </div>
  )
}

/** Chooses a file. */
export function FileField({ onFile, ...field }: FileFieldProps) {
  return <TextField {...field} type="file" onInput={(event) => onFile(event.currentTarget.files?.[0])} />
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, title: string])[]
  readonly onChoose: (value: string) => void
  /** On one line with its label. */
  readonly isSmall?: boolean
}

export function Choice({ label, value, options, onChoose, isSmall = false }: ChoiceProps) {
  return (
    <label className={isSmall ? 'choice row gap-1 small' : 'field'}>
      <span className={isSmall ? 'quiet' : 'label'}>{label}</span>
      <select
        className={isSmall ? undefined : 'input'}
        value={value}
        onChange={(event) => onChoose(event.target.value)}
      >
        {options.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}
