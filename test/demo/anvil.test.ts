import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnvilOptions, anvilPackage, startAnvil } from '../../demo/network/anvil.ts'
import demo from '../../demo/package.json' with { type: 'json' }
import { descendantsOf, isAlive } from '../support/process.ts'

const root = join(import.meta.dirname, '../..')
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

describe('where there is no setpriv, as on macOS', () => {
  it('a node works, and stops when it is asked to', async () => {
    const anvil = await startAnvil({ ...OPTIONS, platform: 'darwin' })
    expect(await anvil.rpc.call('eth_chainId', [])).toBe('0x7aa8')
    await anvil.stop()
    expect(await anvil.exited).toMatchObject({ expected: true })
  })

  it('a node ends with the process that started it, also when that is killed', async () => {
    const options = JSON.stringify({ ...OPTIONS, platform: 'darwin' })
    const program = `import { startAnvil } from '${root}/demo/network/anvil.ts'
await startAnvil(${options})
console.log('started')`
    const parent = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(parent.stdout, 'data')
    const kept = descendantsOf(parent.pid ?? 0)
    expect(kept.map(({ name }) => name)).toContain('anvil')
    parent.kill('SIGKILL')
    await expect.poll(() => kept.filter(isAlive)).toEqual([])
  })
})

describe('the package of a node', () => {
  it.each([
    ['linux', 'x64', '@foundry-rs/anvil-linux-amd64'],
    ['linux', 'arm64', '@foundry-rs/anvil-linux-arm64'],
    ['darwin', 'x64', '@foundry-rs/anvil-darwin-amd64'],
    ['darwin', 'arm64', '@foundry-rs/anvil-darwin-arm64'],
  ])('for %s on %s is one that npm installs', (platform, arch, name) => {
    expect(anvilPackage(platform, arch)).toBe(name)
    expect(Object.keys(demo.optionalDependencies)).toContain(name)
  })

  it.each([
    ['win32', 'x64'],
    ['linux', 'riscv64'],
  ])('for %s on %s is missing, which is said', (platform, arch) => {
    expect(() => anvilPackage(platform, arch)).toThrow('published for Linux and macOS on x64 and arm64')
  })
})

describe('the committed contracts', () => {
  it('equal those in the published packages', async () => {
    const tool = fileURLToPath(new URL('../../tools/extract-contracts.ts', import.meta.url))
    await expect(run(process.execPath, [tool, '--check'])).resolves.toMatchObject({ stderr: '' })
  })
})
