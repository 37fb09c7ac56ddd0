import { readdirSync, readFileSync } from 'node:fs'

/**
 * How long a stop may take in all after its delay, in milliseconds: calls in flight have half of it. With the default delay less than the 30 s after
 * which most supervisors kill.
 */
export const STOP_GRACE_MS = 20_000

/**
 * Ends this process and those that it started at once. A database server recovers at its next start; a chain of the demo continues from its last
 * saved block.
 */
export function endByForce(exitCode: number): never {
  for (const pid of descendantsOf(process.pid)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
  process.exit(exitCode)
}

/** Empty where there is no /proc: servers are started on Linux alone. */
function descendantsOf(pid: number): readonly number[] {
  try {
    const tasks = `/proc/${pid}/task`
    const children = readdirSync(tasks).flatMap((task) => numbersIn(readFileSync(`${tasks}/${task}/children`, 'utf8')))
    return children.flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return []
  }
}

function numbersIn(text: string): readonly number[] {
  return text.split(' ').filter(Boolean).map(Number)
}
