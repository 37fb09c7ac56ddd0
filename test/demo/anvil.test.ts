import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnvilOptions, startAnvil } from '../../demo/network/anvil.ts'

const run = promisify(execFile)
const OPTIONS: AnvilOptions = {
  chainId: 31_400,
  mnemonic: 'test test test test test test test test test test test junk',
  accounts: 1,
  automine: false,
}

describe('a node that cannot start', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-demo-anvil-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('names the port that is in use', async () => {
    const first = await startAnvil(OPTIONS)
    const port = Number(new URL(first.rpcUrl).port)
    await expect(startAnvil({ ...OPTIONS, port })).rejects.toThrow(`port ${port} is in use`)
    await first.stop()
  })

  it('reports a state file that cannot be read', async () => {
    const loadFile = join(folder, 'torn.json')
    await writeFile(loadFile, '{"block":')
    await expect(startAnvil({ ...OPTIONS, loadFile })).rejects.toMatchObject({ stateUnreadable: true })
  })

  it('names the lock file that another process holds', async () => {
    const state = { dumpFile: join(folder, 'exit.json'), dumpIntervalSec: 1_000, lockFile: join(folder, 'lock') }
    const first = await startAnvil({ ...OPTIONS, state })
    await expect(startAnvil({ ...OPTIONS, state })).rejects.toThrow(/another process holds .*lock/)
    await first.stop()
    expect((await first.exited).expected).toBe(true)
    const second = await startAnvil({ ...OPTIONS, state, loadFile: state.dumpFile })
    await second.stop()
  })
})

describe('the committed contracts', () => {
  it('equal those in the published packages', async () => {
    const tool = fileURLToPath(new URL('../../tools/extract-contracts.ts', import.meta.url))
    await expect(run(process.execPath, [tool, '--check'])).resolves.toMatchObject({ stderr: '' })
  })
})
