import { hostname, userInfo } from 'node:os'

/** Who runs this process: `user@host`. A user without a name, as in many containers, appears as `uid 1000`. */
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
