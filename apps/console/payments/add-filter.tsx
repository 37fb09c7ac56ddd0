import { useState } from 'react'
import { Button as AriaButton, Dialog, DialogTrigger, Popover } from 'react-aria-components'
import { readAmount, sayUnreadAmount } from '../../shared/read-amount.ts'
import { paymentsTexts, suggestTexts } from '../../shared/texts.ts'
import { Button, Choice, Form, TextField, textOf } from '../parts/fields.tsx'
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
      <Popover className="card popover" placement="bottom end" offset={4}>
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
  const [wrong, setWrong] = useState<string>()
  const isAmount = field === 'minAmount' || field === 'maxAmount'
  const send = (typed: FormData) => {
    const text = textOf(typed, 'value')
    const value = isAmount ? readAmount(text) : text
    if (typeof value !== 'string') setWrong(sayUnreadAmount(value))
    else if (value !== '') onFilter({ field, value })
  }
  return (
    <Form className="stack" onSend={send}>
      <Choice
        label={paymentsTexts.filterField}
        value={field}
        options={FILTER_FIELDS.filter((each) => each !== 'q').map((each) => [each, suggestTexts.fields[each]])}
        onChoose={(chosen) => {
          setField(chosen as FilterField)
          setWrong(undefined)
        }}
      />
      <TextField
        key={field}
        name="value"
        label={paymentsTexts.filterValue}
        wrong={wrong}
        type={/^(?:from|to|changed.*)$/.test(field) ? 'date' : 'text'}
        inputMode={isAmount ? 'decimal' : undefined}
        suggestions={namesFor(field, known).map((value) => ({ value }))}
      />
      <Button text={paymentsTexts.add} kind="main" type="submit" />
    </Form>
  )
}

/** The known names of a field, also of one that excludes them or has them for one side. */
function namesFor(field: FilterField, known: KnownNames): readonly string[] {
  const [kind] = /(?:status|type|network|currency)$/.exec(field.toLowerCase()) ?? []
  return kind === undefined ? [] : known[kind as keyof KnownNames]
}
