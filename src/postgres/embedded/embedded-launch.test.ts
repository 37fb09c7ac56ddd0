import { describe, expect, test } from 'vitest'
import { EmbeddedServerError } from './embedded-error.ts'
import { findBinaries } from './embedded-files.ts'
import { chooseWay, findTools, identityCommand, type LaunchFacts, parsePasswd } from './embedded-launch.ts'

const nobody = { uid: 65534, gid: 65534 }
const daemon = { uid: 1, gid: 1 }
const facts: LaunchFacts = {
  uid: 1000,
  named: true,
  owner: undefined,
  users: [{ uid: 0, gid: 0 }, daemon, nobody],
  namespaceWorks: true,
  path: '/data/pg/data',
}

describe('the way a server is launched', () => {
  test.each<[string, Partial<LaunchFacts>, object]>([
    ['a user starts as himself', {}, { kind: 'plain' }],
    ['a user starts his own folder as himself', { owner: { uid: 1000, gid: 5 } }, { kind: 'plain' }],
    ['a user without passwd entry takes the uid of one who has', { named: false }, { kind: 'namespace', ...nobody }],
    ['root makes a folder in a user namespace', { uid: 0 }, { kind: 'namespace', ...nobody }],
    ['root, without nobody, takes any other user', { uid: 0, users: [daemon] }, { kind: 'namespace', ...daemon }],
    ['root without user namespaces becomes nobody', { uid: 0, namespaceWorks: false }, { kind: 'switch', ...nobody }],
    [
      'root starts a folder made in a namespace in one, whatever a probe would say',
      { uid: 0, owner: { uid: 0, gid: 0 }, namespaceWorks: false },
      { kind: 'namespace', ...nobody },
    ],
    [
      'root starts a folder of another user as that user',
      { uid: 0, owner: { uid: 1000, gid: 5 } },
      { kind: 'switch', uid: 1000, gid: 5 },
    ],
  ])('%s', (_, given, way) => {
    expect(chooseWay({ ...facts, ...given })).toEqual(way)
  })

  test('a user is refused the folder of another, both named', () => {
    const choose = () => chooseWay({ ...facts, owner: { uid: 33, gid: 33 } })
    expect(choose).toThrow('/data/pg/data belongs to the user with uid 33, and this process runs as uid 1000')
    expect(choose).toThrow(expect.objectContaining({ reason: 'OTHER_OWNER' }))
  })

  test('root on a system without another user is told so', () => {
    expect(() => chooseWay({ ...facts, uid: 0, users: [{ uid: 0, gid: 0 }] })).toThrow(/lists no other user/)
  })

  test('every way arms the death signal last, after what would disarm it', () => {
    const tools = { flock: 'flock', setpriv: 'setpriv', unshare: 'unshare', sh: 'sh' }
    const ways = [{ kind: 'plain' }, { kind: 'namespace', ...nobody }, { kind: 'switch', ...nobody }] as const
    for (const way of ways) expect(identityCommand(tools, way).slice(-2)).toEqual(['--pdeathsig', 'INT'])
  })
})

test('users are read from passwd, lines that are none passed over', () => {
  const text = 'root:x:0:0:root:/root:/bin/bash\n# note\n+::::::\nnobody:x:65534:65533:,,,:/:/bin/false\n\n'
  expect(parsePasswd(text)).toEqual([
    { uid: 0, gid: 0 },
    { uid: 65534, gid: 65533 },
  ])
})

test('the system programs are found also when PATH leaves them out', () => {
  expect(findTools('').sh).toMatch(/\/sh$/)
})

test.each([
  ['darwin', 'arm64', 'there is none for darwin-arm64'],
  ['linux', 's390x', 'there is none for linux-s390x'],
])('%s %s has no PostgreSQL here and is pointed to DATABASE_URL', async (platform, arch, why) => {
  const found = findBinaries(platform, arch)
  await expect(found).rejects.toThrow(EmbeddedServerError)
  await expect(found).rejects.toThrow(`${why}. Set DATABASE_URL`)
})
