import type { Values } from './data/seed-payments.ts'

/**
 * Replaces `${name}` in a text.
 *
 * @throws Error for a name without a value
 */
export function fillInText(text: string, values: Values): string {
  return text.replaceAll(/\$\{([\w.]+)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`there is no value ${name}`)
    return value
  })
}

/** Replaces `${name}` in all texts of a case. @throws Error for a name without a value */
export function fillIn<T>(template: T, values: Values): T {
  return JSON.parse(fillInText(JSON.stringify(template), values)) as T
}
