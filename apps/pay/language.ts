import { setLocale } from '../shared/format-time.ts'
import { en, type PayTexts } from './texts/en.ts'

/** Each language's texts come when they are wanted; English is part of the page. */
const others = {
  de: () => import('./texts/de.ts'),
  es: () => import('./texts/es.ts'),
  fr: () => import('./texts/fr.ts'),
} as const

type Language = 'en' | keyof typeof others

/** The texts of the language that was chosen. */
export let payTexts: PayTexts = en

/**
 * Chooses the language: that of `?lang` where the page has it, else the first of the browser's that it has, else English. Numbers and times take
 * the browser's form of that language, `de-CH`.
 */
export function chooseLanguage(search: string, preferred: readonly string[]): { language: Language; locale: string } {
  const wanted = [new URLSearchParams(search).get('lang') ?? '', ...preferred].map((tag) => tag.toLowerCase())
  const language = wanted.map((tag) => tag.slice(0, 2)).find(isOurs) ?? 'en'
  const locale = preferred.find((tag) => tag.slice(0, 2).toLowerCase() === language) ?? language
  return { language, locale }
}

function isOurs(language: string): language is Language {
  return language === 'en' || Object.hasOwn(others, language)
}

/** Uses the language that is chosen. One that cannot be loaded leaves the page in English. */
export async function useLanguage(): Promise<void> {
  const { language, locale } = chooseLanguage(location.search, navigator.languages)
  try {
    if (language !== 'en') payTexts = (await others[language]()).texts
    document.documentElement.lang = locale
    setLocale(locale)
  } catch {
    document.documentElement.lang = 'en'
  }
}
