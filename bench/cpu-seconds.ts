import { readdirSync, readFileSync } from 'node:fs'
import type { Knex } from 'knex'

/** CPU seconds of this process and of the database server since their start; less noisy than elapsed time. */
export interface CpuSeconds {
  readonly node: number
  readonly postgres: number
}

/** Clock ticks a second of /proc; fixed on Linux. */
const TICKS_PER_SECOND = 100

/**
 * Makes a meter. The server must run on this machine.
 *
 * @returns a function that reads the CPU seconds of all threads here and of all processes of the server, also of ended ones
 */
export async function meterCpu(knex: Knex): Promise<() => CpuSeconds> {
  const { rows } = await knex.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid')
  const postmaster = readStat(String(rows[0]?.pid))?.parent
  if (postmaster === undefined) throw new Error('the server does not run on this machine')
  return () => {
    const { user, system } = process.cpuUsage()
    return { node: (user + system) / 1e6, postgres: readServer(postmaster) / TICKS_PER_SECOND }
  }
}

function readServer(postmaster: string): number {
  let ticks = readStat(postmaster)?.ticksWithEnded ?? 0
  for (const pid of readdirSync('/proc')) {
    const stat = /^\d+$/.test(pid) ? readStat(pid) : undefined
    if (stat?.parent === postmaster) ticks += stat.ticks
  }
  return ticks
}

/** @see https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function readStat(pid: string) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain any character.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number)
    const ticks = (user ?? 0) + (system ?? 0)
    return { parent: fields[1] as string, ticks, ticksWithEnded: ticks + (endedUser ?? 0) + (endedSystem ?? 0) }
  } catch {
    return undefined
  }
}
