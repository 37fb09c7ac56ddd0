/** The locks of tables that PostgreSQL has, weakest first. */
export const lockModes = [
  'ACCESS SHARE',
  'ROW SHARE',
  'ROW EXCLUSIVE',
  'SHARE UPDATE EXCLUSIVE',
  'SHARE',
  'SHARE ROW EXCLUSIVE',
  'EXCLUSIVE',
  'ACCESS EXCLUSIVE',
] as const

export type LockMode = (typeof lockModes)[number]

/** What others cannot do with a table while it is locked. */
export function stoppedBy(mode: LockMode): 'nothing' | 'writes' | 'reads and writes' {
  if (mode === 'ACCESS EXCLUSIVE') return 'reads and writes'
  return lockModes.indexOf(mode) >= lockModes.indexOf('SHARE') ? 'writes' : 'nothing'
}
