import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../run-command.ts'

type Package = { readonly version: string; readonly dependencies: Readonly<Record<string, string>> }

const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Package

it('the client has the version of the service', () => {
  expect(read('clients/typescript/package.json').version).toBe(read('package.json').version)
})

it('the client takes the releases with which its code is generated and tested, and newer ones', () => {
  const { dependencies } = read('clients/typescript/package.json')
  for (const [name, range] of Object.entries(dependencies)) {
    expect([name, range]).toEqual([name, `^${read(`node_modules/${name}/package.json`).version}`])
  }
})
