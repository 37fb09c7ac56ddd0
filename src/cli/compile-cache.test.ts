import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeCompileCacheFolder } from './compile-cache.ts'

let packages: string
let cache: string
beforeEach(() => {
  packages = mkdtempSync(join(tmpdir(), 'waybill-packages-'))
  cache = join(packages, '.cache', 'waybill')
})
afterEach(() => rmSync(packages, { recursive: true }))

it('lies beside the packages, for this user alone', () => {
  expect(makeCompileCacheFolder(packages)).toBe(cache)
  expect(lstatSync(cache).mode & 0o777).toBe(0o700)
  expect(makeCompileCacheFolder(packages)).toBe(cache)
})

function letOthersWrite(): string {
  mkdirSync(cache, { recursive: true })
  chmodSync(cache, 0o770)
  return packages
}

function linkElsewhere(): string {
  mkdirSync(join(packages, '.cache'))
  symlinkSync(tmpdir(), cache)
  return packages
}

it.each([
  ['others can write into it', letOthersWrite],
  ['it is a link', linkElsewhere],
  ['there are no packages', () => join(packages, 'absent')],
])('is not used where %s', (_, arrange) => {
  expect(makeCompileCacheFolder(arrange())).toBeUndefined()
})
