/** Forms: their fields and buttons. */
import { type ComponentProps, type FormEvent, type ReactNode, useId } from 'react'

interface FormProps extends Omit<ComponentProps<'form'>, 'onSubmit'> {
  /** @param typed - the values of its fields by their names */
  readonly onSend: (typed: FormData) => void
}

/** Enter in a field and the button that submits do the same; no page is loaded. What is wrong is said by the service, at its field. */
export function Form({ onSend, ...rest }: FormProps) {
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    onSend(new FormData(event.currentTarget))
  }
  return <form noValidate {...rest} onSubmit={send} />
}

/** What stands in a field, without the spaces around it. */
export function textOf(typed: FormData, name: string): string {
  const value = typed.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** The fields that are not empty. */
export const textsOf = <Name extends string>(typed: FormData, names: readonly Name[]) =>
  Object.fromEntries(
    names.map((name) => [name, textOf(typed, name)] as const).filter(([, text]) => text !== ''),
  ) as Partial<Record<Name, string>>

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

interface TextFieldProps extends ComponentProps<'input'> {
  readonly label: string
  readonly help?: string | undefined
  readonly wrong?: string | undefined
  readonly isMono?: boolean
  readonly suggestions?: readonly SuggestedValue[]
}

/** Suggestions are the browser's own list: it works by keyboard, on phones and for those who listen. */
export function TextField({ label, help, wrong, isMono = false, suggestions = [], ...input }: TextFieldProps) {
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
        <p id={`${id}-wrong`} className="wrong" role="alert">
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

interface TicksProps {
  readonly legend: string
  readonly name: string
  readonly options: readonly (readonly [value: string, title: ReactNode])[]
  readonly ticked: readonly string[]
}

/** Of several values any. */
export function Ticks({ legend, name, options, ticked }: TicksProps) {
  return (
    <fieldset className="stack gap-1">
      <legend>{legend}</legend>
      {options.map(([value, title]) => (
        <label key={value} className="row gap-1">
          <input type="checkbox" name={name} value={value} defaultChecked={ticked.includes(value)} />
          {title}
        </label>
      ))}
    </fieldset>
  )
}

interface ChoiceProps extends ComponentProps<'select'> {
  readonly label: string
  readonly options: readonly (readonly [value: string, title: string])[]
  readonly onChoose?: (value: string) => void
  /** On one line with its label. */
  readonly isSmall?: boolean
}

export function Choice({ label, options, onChoose, isSmall = false, ...select }: ChoiceProps) {
  return (
    <label className={isSmall ? 'row gap-1 small' : 'field'}>
      <span className={isSmall ? 'quiet' : 'label'}>{label}</span>
      <select {...select} className="input" onChange={(event) => onChoose?.(event.target.value)}>
        {options.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}
