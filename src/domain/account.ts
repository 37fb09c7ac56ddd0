/** A tenant. Its rows are keyed by its id; people and API keys use its name. */
export interface Account {
  readonly id: number
  /** 1 to 64 characters of `a-z`, `0-9`, `.`, `_`, `-`, beginning with a letter or digit. */
  readonly name: string
}

const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/

/** Whether a text can be an account's name. */
export function isAccountName(text: string): boolean {
  return NAME_PATTERN.test(text)
}

/** The part of the places of a process that nobody takes from a secret key that was made without one, and the cap of each holder where they have one. */
export const USUAL_SHARE = 0.1
