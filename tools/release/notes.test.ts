import { expect, it } from 'vitest'
import { notesOf } from './notes.ts'

const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n- x\n\n## 0.2.0 - 2026-11-28\n\n- now, see [this](docs/a.md) and [that](https://b.example)\n\n## 0.1.0\n\n- first\n'

it.each([
  [
    '0.2.0',
    '# Waybill 0.2.0 - 2026-11-28\n\n- now, see [this](https://h.example/blob/v0.2.0/docs/a.md) and [that](https://b.example)\n',
  ],
  ['0.1.0', undefined],
  ['0.3.0', undefined],
])('has the dated section of %s', (version, notes) => {
  expect(notesOf(CHANGELOG, version, 'https://h.example')).toBe(notes)
})
