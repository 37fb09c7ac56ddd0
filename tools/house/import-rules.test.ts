import { describe, expect, it } from 'vitest'
import { findViolations } from './import-rules.ts'
import { importsAlone, scanSource } from './source-scan.ts'

describe('findViolations', () => {
  it.each([
    [
      'a client importing the service',
      'clients/typescript/src/wallet/a.ts',
      "import { x } from '../../../../src/domain/x.ts'",
      'a client imports nothing from outside its folder but packages',
    ],
    ['domain importing a room', 'src/domain/a.ts', "import { x } from '../store/x.ts'", 'domain does not import store'],
    [
      'errors importing domain',
      'src/errors/waybill-error.ts',
      "import { x } from '../domain/x.ts'",
      'errors does not import domain',
    ],
    ['siblings', 'src/search/a.ts', "import { x } from '../detection/x.ts'", 'search does not import detection'],
    [
      'siblings, types alone',
      'src/auth/a.ts',
      "import type { X } from '../requests/x.ts'",
      'auth does not import requests',
    ],
    ['a room importing protocol', 'src/auth/a.ts', "import { x } from '../api/x.ts'", 'auth does not import api'],
    [
      'web importing values of api',
      'src/web/a.ts',
      "import { x } from '../api/x.ts'",
      'web imports only types from api',
    ],
    [
      'a screen importing the process',
      'src/web/console/a.ts',
      "import { x } from '../screens/x.ts'",
      'console imports its own folder',
    ],
    [
      'the look importing a screen',
      'src/web/look/a.ts',
      "import { x } from '../pay/x.ts'",
      'look imports its own folder',
    ],
    ['a room importing app', 'src/search/a.ts', "import { x } from '../app.ts'", 'search does not import app'],
    [
      'a room importing config',
      'src/routing/a.ts',
      "import { x } from '../config.ts'",
      'routing does not import config',
    ],
    [
      'a deep file of a room',
      'src/routing/providers/a.ts',
      "import { x } from '../../search/x.ts'",
      'not import search',
    ],
    [
      'transcoding importing errors',
      'src/transcoding/a.ts',
      "import { x } from '../errors/waybill-error.ts'",
      'not import errors',
    ],
    ['store importing a room', 'src/store/a.ts', "import { x } from '../search/x.ts'", 'store does not import search'],
    [
      'postgres importing store',
      'src/postgres/a.ts',
      "import { x } from '../store/x.ts'",
      'postgres does not import store',
    ],
    [
      'domain importing chains',
      'src/domain/a.ts',
      "import type { X } from '../chains/x.ts'",
      'domain does not import chains',
    ],
    ['api importing a value', 'src/api/a.ts', "import { x } from '../search/x.ts'", 'only types from search'],
    ['api importing a value beside a type', 'src/api/a.ts', "import { type X, y } from '../auth/x.ts'", 'only types'],
    ['api importing store', 'src/api/a.ts', "import type { X } from '../store/x.ts'", 'api does not import store'],
    ['demo importing store', 'src/demo/a.ts', "import { x } from '../store/x.ts'", 'demo does not import store'],
    [
      'observability importing domain',
      'src/observability/a.ts',
      "import { x } from '../domain/x.ts'",
      'not import domain',
    ],
    [
      'gen outside of protocol',
      'src/search/a.ts',
      "import { x } from '../../gen/payments/v1/x_pb.js'",
      'not import gen/',
    ],
    ['gen in app', 'src/app.ts', "import { x } from '../gen/payments/v1/x_pb.js'", 'app does not import gen/'],
    ['a test helper', 'src/search/a.ts', "import { x } from '../../test/support/x.ts'", 'nothing from outside'],
    ['a specifier without extension', 'src/search/a.ts', "import { x } from './x'", 'end in .ts'],
    ['a specifier with .js', 'src/search/a.ts', "import { x } from './x.js'", 'end in .ts'],
    ['export from', 'src/search/a.ts', "export { x } from '../auth/x.ts'", 'search does not import auth'],
    ['export star', 'src/search/a.ts', "export * from '../auth/x.ts'", 'search does not import auth'],
    ['a bare import', 'src/search/a.ts', "import '../auth/x.ts'", 'search does not import auth'],
    ['a dynamic import', 'src/search/a.ts', "const x = await import('../auth/x.ts')", 'search does not import auth'],
    ['an import type', 'src/search/a.ts', "let x: import('../auth/x.ts').X", 'search does not import auth'],
    ['an import over lines', 'src/search/a.ts', "import {\n  x,\n  type Y,\n} from '../auth/x.ts'", 'not import auth'],
    ['a default export', 'src/search/a.ts', 'export default 1', 'no default exports'],
    ['a renamed default export', 'src/search/a.ts', 'const a = 1\nexport { a as default }', 'no default exports'],
    ['an index file', 'src/search/index.ts', '', 'no index.ts'],
    ['a room without a rule', 'src/attic/a.ts', '', 'attic stands in no rule'],
    ['raw SQL', 'src/search/a.ts', "db.raw('x')", 'SQL stands in'],
    ['typed raw SQL', 'src/search/a.ts', "db.raw<Rows>('x')", 'SQL stands in'],
    ['a select in a template', 'src/search/a.ts', 'const q = `\n  select id\n  from payments`', 'SQL stands in'],
    ['an insert', 'src/detection/a.ts', "q('INSERT INTO payments values (1)')", 'SQL stands in'],
    ['an update', 'src/detection/a.ts', 'q(`update ${table} set a = 1`)', 'SQL stands in'],
    ['a CTE', 'src/search/a.ts', 'q(`with page as materialized (select 1)`)', 'SQL stands in'],
  ])('reports %s', (_case, path, source, rule) => {
    expect(findViolations([{ path, source }])).toEqual([
      { path, line: expect.any(Number), rule: expect.stringContaining(rule) },
    ])
  })

  it.each([
    [
      'a room importing the rooms below',
      'src/search/a.ts',
      "import { x } from '../store/x.ts'\nimport { y } from '../domain/y.ts'",
    ],
    ['a file of the same room', 'src/routing/providers/a.ts', "import { x } from '../rank.ts'"],
    ['api importing types', 'src/api/a.ts', "import { type X, type Y } from '../search/x.ts'"],
    ['api importing gen', 'src/api/services/a.ts', "import { X } from '../../../gen/payments/v1/x_pb.js'"],
    ['a test importing gen', 'src/transcoding/a.test.ts', "import { X } from '../../gen/payments/v1/x_pb.js'"],
    [
      'test data importing a test helper',
      'src/transcoding/testdata/a.ts',
      "import { x } from '../../../test/support/x.ts'",
    ],
    ['app importing everything', 'src/app.ts', "import { x } from './search/x.ts'\nimport { y } from './api/y.ts'"],
    ['domain importing errors', 'src/domain/a.ts', "import { x } from '../errors/waybill-error.ts'"],
    ['a package', 'src/domain/a.ts', "import { getAddress } from 'viem'"],
    [
      'an import in a comment',
      'src/domain/a.ts',
      "/*\nimport { x } from '../store/x.ts'\n*/\n// import('../store/x.ts')",
    ],
    ['an import in a template', 'src/domain/a.ts', "const x = `\nimport { x } from '../store/x.ts'\n`"],
    ['SQL in a room, in its folder', 'src/search/sql/shapes/walk.ts', "db.raw('select 1 from payments')"],
    ['SQL in the store', 'src/store/a.ts', "db.raw('insert into payments values (1)')"],
    ['SQL in postgres', 'src/postgres/migrations/a.ts', "db.raw('create table payments ()')"],
    [
      'prose that begins like SQL',
      'src/search/a.ts',
      "const says = ['select one of these', 'update your client', 'with care']",
    ],
    ['String.raw', 'src/search/a.ts', 'const x = String.raw`\\d`'],
  ])('passes %s', (_case, path, source) => {
    expect(findViolations([{ path, source }])).toEqual([])
  })

  it('gives the line of the specifier, past literals and comments of several lines', () => {
    const source = "/* two\n lines */\nconst t = `${`\n`} \n`\nexport * from '../auth/x.ts'"
    expect(findViolations([{ path: 'src/search/a.ts', source }])).toMatchObject([{ line: 6 }])
  })
})

describe('scanSource', () => {
  it.each([
    ['quotes in a regular expression', "const r = /['\"`]/.test(x)\nconst s = 'a'", ['a']],
    ['a slash in a class of a regular expression', "f(/[/']/, 'a')", ['a']],
    ['a division', "const x = a / b / c\nconst s = 'a'", ['a']],
    ['a comment sign in a string', "const u = 'http://x'\nconst s = 'a'", ['http://x', 'a']],
    ['an escaped quote', "const s = 'a\\'b'", ["a\\'b"]],
    ['an apostrophe in a comment', "// don't\nconst s = 'a'", ['a']],
    ['a template in a template', 'const s = `a${`b${1}`}c`', ['a${`b${1}`}c']],
  ])('reads past %s', (_case, source, texts) => {
    expect(scanSource(source).literals.map(({ text }) => text)).toEqual(texts)
  })

  it('refuses source that ends within a literal', () => {
    expect(() => scanSource("const s = 'a")).toThrow('the string on line 1 is not closed')
  })
})

it('keeps the imports of a file with markup, and their lines', () => {
  const source =
    "import { a } from './a.ts'\nimport './b.css'\nconst c = () => <p>It's</p>\nconst d = lazy(() => import('./d.tsx'))\n"
  expect(scanSource(importsAlone(source)).imports).toEqual([
    { specifier: './a.ts', line: 1, typeOnly: false },
    { specifier: './b.css', line: 2, typeOnly: false },
    { specifier: './d.tsx', line: 4, typeOnly: false },
  ])
})
