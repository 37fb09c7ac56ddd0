import { Button, ComboBox, FieldError, Input, Label, ListBox, ListBoxItem, Popover, Text } from 'react-aria-components'
import { requestTexts } from '../../look/texts.ts'
import type { SuggestedValue } from '../parts/fields.tsx'

interface SuggestFieldProps {
  readonly label: string
  readonly help: string
  readonly value: string
  readonly onType: (value: string) => void
  readonly suggestions: readonly SuggestedValue[]
  readonly wrong: string | undefined
  readonly isRequired?: boolean
  readonly isMono?: boolean
}

/** A field that is completed from a list, and takes anything else too: the service knows what is right. */
export function SuggestField(props: SuggestFieldProps) {
  const { label, help, value, onType, suggestions, wrong, isRequired = false, isMono = false } = props
  return (
    <ComboBox
      className="field"
      items={matching(suggestions, value)}
      inputValue={value}
      onInputChange={onType}
      selectedKey={suggestions.some((each) => each.value === value) ? value : null}
      onSelectionChange={(key) => {
        if (key !== null) onType(String(key))
      }}
      allowsCustomValue
      isInvalid={wrong !== undefined}
      isRequired={isRequired}
      validationBehavior="aria"
      shouldFocusWrap
    >
      <Label>{label}</Label>
      <div className="suggest-line">
        <Input className={isMono ? 'input mono' : 'input'} autoComplete="off" spellCheck={false} maxLength={128} />
        <Button className="suggest-open" aria-label={requestTexts.create.show}>
          <span aria-hidden="true">▾</span>
        </Button>
      </div>
      {wrong !== undefined && <FieldError className="wrong">{wrong}</FieldError>}
      <Text slot="description" className="quiet small">
        {help}
      </Text>
      <Popover className="popover" offset={4}>
        <ListBox className="options">
          {(each: SuggestedValue) => (
            <ListBoxItem id={each.value} className="option suggest-option" textValue={each.value}>
              <Text slot="label" className={isMono ? 'mono' : undefined}>
                {each.value}
              </Text>
              {each.says !== undefined && each.says !== '' && (
                <Text slot="description" className="quiet small">
                  {each.says}
                </Text>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </ComboBox>
  )
}

/** All of them while what is typed is one of them, so that another can be chosen. */
function matching(suggestions: readonly SuggestedValue[], typed: string): readonly SuggestedValue[] {
  const wanted = typed.trim().toLowerCase()
  if (suggestions.some(({ value }) => value.toLowerCase() === wanted)) return suggestions
  return suggestions.filter(({ value, says = '' }) => `${value} ${says}`.toLowerCase().includes(wanted))
}
