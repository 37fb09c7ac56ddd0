import { expect, it } from 'vitest'
import { splitTarget } from './exchange.ts'

it.each([
  ['/a/b?c=d', '/a/b', 'c=d'],
  ['/a', '/a', ''],
  ['/a?', '/a', ''],
  ['/a?b?c', '/a', 'b?c'],
  ['/a%3Fb', '/a%3Fb', ''],
  ['/a#b?c#d', '/a#b', 'c#d'],
  ['http://host:80/a?b', '/a', 'b'],
  ['HTTPS://host', '/', ''],
  ['http://host?a', '/', 'a'],
  ['*', '*', ''],
  ['//host/a', '//host/a', ''],
  ['', '/', ''],
])('the target %s is the path %s and the query %s', (target, rawPath, rawQuery) => {
  expect(splitTarget(target)).toEqual({ rawPath, rawQuery })
})
