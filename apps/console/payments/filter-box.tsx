import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { PaymentSummary_GroupBy } from '@waybill/client'
import { memo, useEffect, useRef, useState } from 'react'
import {
  Button as AriaButton,
  ComboBox,
  Dialog,
  DialogTrigger,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Tag,
  TagGroup,
  TagList,
  Text,
} from 'react-aria-components'
import { symbolOf } from '../../shared/format-amount.ts'
import { paymentsTexts, stateTexts, suggestTexts } from '../../shared/texts.ts'
import { Button, Choice, Form, TextField } from '../parts/fields.tsx'
import { useZone } from '../parts/hooks.ts'
import { useWaybill } from '../parts/signed-in.tsx'
import {
  FILTER_FIELDS,
  type Filter,
  type FilterField,
  filtersOf,
  withFilters,
  withoutFilter,
  withoutFilters,
} from './filters.ts'
import { type KnownNames, type Suggestion, suggest } from './suggest.ts'

interface FilterBoxProps {
  readonly query: URLSearchParams
  /** Shows the query that is made of the one before. */
  readonly onChange: (make: (before: URLSearchParams) => URLSearchParams) => void
}

/** One box for everything that payments can be found by, and the filters that are set, as chips that can be taken away. */
export const FilterBox = memo(function FilterBox({ query, onChange }: FilterBoxProps) {
  const [isOpened, setOpened] = useState(false)
  const known = useKnownNames(isOpened)
  const filters = filtersOf(query)
  return (
    <search className="filters">
      <div className="filter-line">
        <SearchBox
          known={known}
          onFocus={() => setOpened(true)}
          onFilters={(added) => onChange((before) => withFilters(before, added))}
        />
        <AddFilter
          known={known}
          onOpen={() => setOpened(true)}
          onFilter={(added) => onChange((before) => withFilters(before, [added]))}
        />
      </div>
      {filters.length > 0 && (
        <div className="chips row">
          <Chips filters={filters} onRemove={(filter) => onChange((before) => withoutFilter(before, filter))} />
          <Button text={paymentsTexts.clear} kind="plain" onClick={() => onChange(withoutFilters)} />
        </div>
      )}
    </search>
  )
})

function Chips({ filters, onRemove }: { filters: readonly Filter[]; onRemove: (filter: Filter) => void }) {
  const zone = useZone()
  const chips = filters.map((filter) => ({ ...filter, id: `${filter.field}:${filter.value}` }))
  return (
    <TagGroup
      aria-label={paymentsTexts.chips}
      onRemove={(ids) => {
        for (const chip of chips) if (ids.has(chip.id)) onRemove(chip)
      }}
    >
      <TagList items={chips} className="row">
        {({ field, value }) => (
          <Tag className="chip" textValue={`${suggestTexts.fields[field]} ${value}`}>
            <span className="quiet">{suggestTexts.fields[field]}</span>{' '}
            <span className="chip-value">{valueText(field, value)}</span>
            {(field === 'from' || field === 'to') && <span className="quiet small">{zone}</span>}
            <AriaButton slot="remove" className="bare chip-remove" aria-label={paymentsTexts.remove}>
              ×
            </AriaButton>
          </Tag>
        )}
      </TagList>
    </TagGroup>
  )
}

function valueText(field: Filter['field'], value: string): string {
  const name = value.toUpperCase()
  if (field.endsWith('status') && name in stateTexts.payment)
    return stateTexts.payment[name as keyof typeof stateTexts.payment]
  return value
}

interface SearchBoxProps {
  readonly known: KnownNames
  readonly onFocus: () => void
  readonly onFilters: (filters: readonly Filter[]) => void
}

/** A box that has the focus opens its menu when its text changes, also when it is emptied. So each choice ends with a new, closed box. */
function SearchBox({ onFilters, ...rest }: SearchBoxProps) {
  const [round, setRound] = useState(0)
  const choose = (filters: readonly Filter[]) => {
    setRound(round + 1)
    onFilters(filters)
  }
  return <EmptyBox key={round} hasFocus={round > 0} onFilters={choose} {...rest} />
}

function EmptyBox({ known, hasFocus, onFocus, onFilters }: SearchBoxProps & { readonly hasFocus: boolean }) {
  const zone = useZone()
  const [typed, setTyped] = useState('')
  const input = useRef<HTMLInputElement>(null)
  useFocusKey(input)
  const suggestions = suggest(typed, known, { now: new Date(), zone })
  const choose = (id: unknown) => {
    const found = suggestions.find((each) => each.id === id)
    if (found !== undefined) onFilters(found.filters)
  }
  return (
    <ComboBox
      className="grow"
      items={suggestions}
      inputValue={typed}
      onInputChange={setTyped}
      selectedKey={null}
      onSelectionChange={choose}
      onFocus={onFocus}
      menuTrigger="input"
      autoFocus={hasFocus}
      allowsCustomValue
      allowsEmptyCollection={false}
      shouldFocusWrap
    >
      <Label className="unseen">{paymentsTexts.search}</Label>
      <Input
        ref={input}
        className="input"
        placeholder={paymentsTexts.placeholder}
        spellCheck={false}
        autoComplete="off"
        maxLength={256}
        onKeyDown={(event) => {
          // Enter without a choice searches everywhere for what was typed: it never opens the menu.
          if (event.key !== 'Enter' || event.currentTarget.getAttribute('aria-activedescendant')) return
          event.preventDefault()
          if (typed.trim() !== '') choose('q')
        }}
      />
      <Popover className="popover" offset={4}>
        <ListBox className="options">
          {(suggestion: Suggestion) => (
            <ListBoxItem id={suggestion.id} className="option" textValue={suggestion.says}>
              <Text slot="description" className="quiet small">
                {suggestion.title}
              </Text>
              <Text slot="label">{suggestion.says}</Text>
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </ComboBox>
  )
}

/** Ctrl-K or Cmd-K goes to the box. */
function useFocusKey(input: React.RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      input.current?.focus()
      input.current?.select()
    }
    document.addEventListener('keydown', focus)
    return () => document.removeEventListener('keydown', focus)
  }, [input])
}

/** The networks and currencies of the account's payments, read when somebody first goes to the box. */
function useKnownNames(isWanted: boolean): KnownNames {
  const waybill = useWaybill()
  const { NETWORK, CURRENCY } = PaymentSummary_GroupBy
  const { data } = useQuery({
    queryKey: ['known-names'],
    enabled: isWanted,
    staleTime: 600_000,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const [networks, currencies] = await Promise.all([
        waybill.summarizePayments({ groupBy: [NETWORK], top: 100 }, { signal }),
        waybill.summarizePayments({ groupBy: [CURRENCY], top: 100 }, { signal }),
      ])
      return {
        network: networks.groups.flatMap(({ network = [] }) => network),
        currency: withSymbols(currencies.groups.flatMap(({ currency = [] }) => currency)),
      }
    },
  })
  return {
    status: Object.keys(stateTexts.payment),
    type: Object.keys(paymentsTexts.types),
    ...(data ?? { network: [], currency: [] }),
  }
}

/** `USDC`, which is every `USDC-…`, before its ids. */
function withSymbols(ids: readonly string[]): string[] {
  return [...new Set([...ids.map(symbolOf), ...ids])]
}

interface AddFilterProps {
  readonly known: KnownNames
  readonly onOpen: () => void
  readonly onFilter: (filter: Filter) => void
}

/** Every filter of the search by name, for those who would rather choose than type. */
function AddFilter({ known, onOpen, onFilter }: AddFilterProps) {
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
  const send = () => {
    const chosen = value.trim() || (isClosed(field) ? choices[0]?.[0] : undefined)
    if (chosen !== undefined && chosen !== '') onFilter({ field, value: chosen })
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
        }}
      />
      {isClosed(field) ? (
        <Choice label={paymentsTexts.filterValue} value={value} options={choices} onChoose={setValue} />
      ) : (
        <TextField
          label={paymentsTexts.filterValue}
          wrong={undefined}
          type={/^(?:from|to|changed.*)$/.test(field) ? 'date' : 'text'}
          inputMode={field === 'minAmount' || field === 'maxAmount' ? 'decimal' : undefined}
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
