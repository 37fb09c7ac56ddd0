import { useState } from 'react'
import { Button as AriaButton, Dialog, DialogTrigger, Popover } from 'react-aria-components'
import { readAmount, sayUnreadAmount } from '../../shared/read-amount.ts'
import { paymentsTexts, stateTexts, suggestTexts } from '../../shared/texts.ts'
import { Button, Choice, Form, TextField } from '../parts/fields.tsx'
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
      <AriaButton className="button">{paymentsTexts.addFilter}</AriaButton>
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
  const choices = choicesOf(field, known)
  const [wrong, setWrong] = useState<string>()
  const isAmount = field === 'minAmount' || field === 'maxAmount'
  const send = () => {
    const chosen = value.trim() || (isClosed(field) ? choices[0]?.[0] : undefined)
    const read = isAmount ? readAmount(value) : chosen
    if (typeof read === 'string' && read !== '') onFilter({ field, value: read })
    else if (isAmount) setWrong(sayUnreadAmount(read as Exclude<typeof read, string>))
  }
  return (
    <Form className="stack" onSend={send}>
      <Choice
        label={paymentsTexts.filterField}
        value={field}
        options={FILTER_FIELDS.filter((each) => each !== 'q').map((each) => [each, suggestTexts.fields[each]])}
        onChoose={(chosen) => {
          setField(chosen as FilterField)
          setValue('')
          setWrong(undefined)
        }}
      />
      {isClosed(field) ? (
        <Choice label={paymentsTexts.filterValue} value={value} options={choices} onChoose={setValue} />
      ) : (
        <TextField
          label={paymentsTexts.filterValue}
          wrong={wrong}
          type={/^(?:from|to|changed.*)$/.test(field) ? 'date' : 'text'}
          inputMode={isAmount ? 'decimal' : undefined}
          value={value}
          onType={setValue}
          suggestions={choices.map(([each]) => ({ value: each }))}
        />
      )}
      <Button text={paymentsTexts.add} kind="main" type="submit" />
    </Form>
  )
}

const isClosed = (field: FilterField) => /(?:^|\.)(?:status|type)$/.test(field)

function choicesOf(field: FilterField, known: KnownNames): (readonly [value: string, title: string])[] {
  if (field.endsWith('status')) return Object.entries(stateTexts.payment)
  if (field.endsWith('type')) return Object.entries(paymentsTexts.types)
  const names = /network$/i.test(field) ? known.network : /currency$/i.test(field) ? known.currency : []
  return names.map((name) => [name, name])
}
