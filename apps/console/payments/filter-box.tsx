import { memo, useEffect, useEffectEvent, useRef, useState } from 'react'
import {
  Button as AriaButton,
  ComboBox,
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
import { paymentsTexts, suggestTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { useZone } from '../parts/hooks.ts'
import { navigate } from '../parts/location.ts'
import { AddFilter } from './add-filter.tsx'
import { type Filter, filtersOf, withFilters, withoutFilter, withoutFilters } from './filters.ts'
import { type KnownNames, type Suggestion, suggest, valueText } from './suggest.ts'
import { noNames, useKnownNames } from './use-known-names.ts'

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
      <div className="filter-line row">
        <SearchBox
          known={known}
          onFocus={() => setOpened(true)}
          onFilters={(added) => onChange((before) => withFilters(before, added))}
        />
        <AddFilter
          known={known ?? noNames}
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
          <Tag className="card chip" textValue={`${suggestTexts.fields[field]} ${value}`}>
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

interface SearchBoxProps {
  /** Undefined until they have come. */
  readonly known: KnownNames | undefined
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
  const suggestions = suggest(typed, known ?? noNames, { now: new Date(), zone })
  const choose = (id: unknown) => {
    const found = suggestions.find((each) => each.id === id)
    if (found?.to !== undefined) navigate(found.to)
    else if (found !== undefined) onFilters(found.filters)
  }
  // Who is quicker than the names of networks and currencies waits for them: they stand before other suggestions.
  const [isEntered, setEntered] = useState(false)
  const takeFirst = useEffectEvent(() => choose(suggestions[0]?.id))
  useEffect(() => {
    if (isEntered && known !== undefined) takeFirst()
  }, [isEntered, known])
  return (
    <ComboBox
      className="grow"
      items={suggestions}
      inputValue={typed}
      onInputChange={(text) => {
        setTyped(text)
        setEntered(false)
      }}
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
          // Enter without a choice takes the first suggestion, and never opens the menu.
          if (event.key !== 'Enter' || event.currentTarget.getAttribute('aria-activedescendant')) return
          event.preventDefault()
          if (typed.trim() !== '') setEntered(true)
        }}
      />
      <Popover className="card popover" offset={4}>
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
