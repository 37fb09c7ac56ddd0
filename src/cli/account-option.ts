import { isAccountName } from '../domain/account.ts'
import { UsageError } from './command.ts'

/**
 * Checks the account name in an option.
 *
 * @throws UsageError when it has the wrong form
 */
export function parseAccountName(name = ''): string {
  if (isAccountName(name)) return name
  throw new UsageError(
    `"${name}" is not an account: use 1 to 64 of a-z, 0-9, ., _ and -, beginning with a letter or digit`,
  )
}
