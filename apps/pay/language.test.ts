import { describe, expect, it } from 'vitest'
import { chooseLanguage } from './language.ts'
import { texts as de } from './texts/de.ts'
import { en } from './texts/en.ts'
import { texts as es } from './texts/es.ts'
import { texts as fr } from './texts/fr.ts'

/** Words that are the same in another language. */
const SAME_IN_BOTH = ['transaction']

describe('the language', () => {
  it.each([
    ['', ['en-GB', 'de'], 'en', 'en-GB'],
    ['', ['de-CH', 'en'], 'de', 'de-CH'],
    ['', ['pt-BR', 'es-MX'], 'es', 'es-MX'],
    ['', ['ja', 'ko'], 'en', 'en'],
    ['', [], 'en', 'en'],
    ['?lang=fr', ['de-CH'], 'fr', 'fr'],
    ['?lang=DE', ['en-US', 'de-AT'], 'de', 'de-AT'],
    ['?lang=xx', ['es'], 'es', 'es'],
    ['?lang=constructor', ['es'], 'es', 'es'],
  ])('of %s in a browser of %j is %s, with the forms of %s', (search, preferred, language, locale) => {
    expect(chooseLanguage(search, preferred)).toEqual({ language, locale })
  })

  /** The paths of all texts of a language. */
  const pathsOf = (texts: object, path = ''): string[] =>
    Object.entries(texts).flatMap(([name, value]) =>
      typeof value === 'object' ? pathsOf(value as object, `${path}${name}.`) : [path + name],
    )
  const at = (texts: object, path: string) =>
    path.split('.').reduce((value: unknown, name) => (value as never)[name], texts)

  it.each([
    ['German', de],
    ['Spanish', es],
    ['French', fr],
  ])('%s says everything in its own words, with every value', (_, texts) => {
    expect(pathsOf(texts).toSorted()).toEqual(pathsOf(en).toSorted())
    for (const path of pathsOf(en)) {
      const [own, english] = [at(texts, path), at(en, path)]
      if (typeof english !== 'function') continue
      const values = Array.from({ length: english.length }, (_each, place) => `value${place}`)
      const said = (own as (...given: unknown[]) => string)(...values)
      for (const value of values)
        if ((english as typeof own as never as (...g: unknown[]) => string)(...values).includes(value))
          expect(said).toContain(value)
    }
    const isSame = (path: string) => typeof at(en, path) === 'string' && at(en, path) === at(texts, path)
    expect(pathsOf(en).filter(isSame)).toEqual(SAME_IN_BOTH.filter(isSame))
  })
})
