import { isAccountName } from '../domain/account.ts'
import { UsageError } from './command.ts'

/**
 * The account that an option names.
 *
 * @throws UsageError for what cannot be a name
 */
export function parseAccountName(name = ''): string {
  if (isAccountName(name)) return name
  throw new UsageError(
    `"${name}" is not an account: use 1 to 64 of a-z, 0-9, ., _ and -, beginning with a letter or digit`,
  )
}
