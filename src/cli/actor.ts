import { hostname, userInfo } from 'node:os'

/** Who runs this process: `user@host`. Users without a name, as in containers, are told by number. */
export function currentActor(): string {
  return `${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
