import { type FormEvent, useId, useState } from 'react'
import { Button, Dialog, DialogTrigger, Popover } from 'react-aria-components'
import { paymentsTexts, stateTexts, suggestTexts } from '../../look/texts.ts'
import { FILTER_FIELDS, type Filter, type FilterField } from './filters.ts'
import type { KnownNames } from './suggest.ts'

interface AddFilterProps {
  readonly known: KnownNames
  readonly onOpen: () => void
  readonly onFilter: (filter: Filter) => void
}

/** Every filter of the search by name, for those who would rather choose than type. */
export function AddFilter({ known, onOpen, onFilter }: AddFilterProps) {
  return (
    <DialogTrigger onOpenChange={(isOpen) => isOpen && onOpen()}>
      <Button className="button">{paymentsTexts.addFilter}</Button>
      <Popover className="popover" placement="bottom end" offset={4}>
        <Dialog className="add-filter" aria-label={paymentsTexts.addFilter}>
          {({ close }) => (
            <FilterForm
              known={known}
              onFilter={(filter) => {
                onFilter(filter)
                close()
              }}
            />
          )}
        </Dialog>
      </Popover>
    </DialogTrigger>
  )
}

function FilterForm({ known, onFilter }: Omit<AddFilterProps, 'onOpen'>) {
  const [field, setField] = useState<FilterField>('status')
  const [value, setValue] = useState('')
  const fieldId = useId()
  const valueId = useId()
  const choices = choicesOf(field, known)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const chosen = value.trim() || (isClosed(field) ? choices[0]?.value : undefined)
    if (chosen !== undefined && chosen !== '') onFilter({ field, value: chosen })
  }
  return (
    <form onSubmit={submit} className="stack">
      <div className="field">
        <label htmlFor={fieldId}>{paymentsTexts.filterField}</label>
        <select
          id={fieldId}
          className="input"
          value={field}
          onChange={(event) => {
            setField(event.target.value as FilterField)
            setValue('')
          }}
        >
          {FILTER_FIELDS.filter((each) => each !== 'q').map((each) => (
            <option key={each} value={each}>
              {suggestTexts.fields[each]}
            </option>
          ))}
        </select>
      </div>
      <div className="field">
        <label htmlFor={valueId}>{paymentsTexts.filterValue}</label>
        {isClosed(field) ? (
          <select id={valueId} className="input" value={value} onChange={(event) => setValue(event.target.value)}>
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value}>
                {choice.says}
              </option>
            ))}
          </select>
        ) : (
          <input
            id={valueId}
            className="input"
            type={/^(?:from|to|changed.*)$/.test(field) ? 'date' : 'text'}
            inputMode={field === 'minAmount' || field === 'maxAmount' ? 'decimal' : undefined}
            list={`${valueId}-list`}
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        )}
        {!isClosed(field) && (
          <datalist id={`${valueId}-list`}>
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value} />
            ))}
          </datalist>
        )}
      </div>
      <button type="submit" className="button main">
        {paymentsTexts.add}
      </button>
    </form>
  )
}

const isClosed = (field: FilterField) => /(?:^|\.)(?:status|type)$/.test(field)

function choicesOf(field: FilterField, known: KnownNames): { readonly value: string; readonly says: string }[] {
  if (field.endsWith('status')) return Object.entries(stateTexts.payment).map(([value, says]) => ({ value, says }))
  if (field.endsWith('type')) return Object.entries(paymentsTexts.types).map(([value, says]) => ({ value, says }))
  const names = /network$/i.test(field) ? known.networks : /currency$/i.test(field) ? known.currencies : []
  return names.map((value) => ({ value, says: value }))
}
