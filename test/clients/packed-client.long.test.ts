import { execFile } from 'node:child_process'
import { globSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../../tools/run-command.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

// The client as npm packs it, in a project of its own: its types checked with those of its libraries, and a call made.

const run = promisify(execFile)

const PROGRAM = `
import { createWaybill, WaybillCallError, type Payment, type Waybill } from '@waybill/client'
import { createCheckout } from '@waybill/client/checkout'
import { pay, type PayOutcome } from '@waybill/client/wallet'

const [baseUrl = '', apiKey = ''] = process.argv.slice(2)
const waybill: Waybill = createWaybill({ baseUrl, apiKey })
const { payments }: { payments: Payment[] } = await waybill.searchPayments({ limit: 1 })
const request = { request: async () => [] }
export const payBy = (paymentReference: string): Promise<PayOutcome> =>
  pay({ waybill: createCheckout({ baseUrl, apiKey }), paymentReference, provider: request, wallet: '0x' })
const reasons: string[] = []
try {
  await payBy('0x00000000000000ff')
} catch (error) {
  if (error instanceof WaybillCallError) reasons.push(...error.fieldViolations.map(({ reason }) => reason), error.reason)
}
console.log(JSON.stringify({ payments: payments.length, reasons }))
`

const SETTINGS = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: ['node'],
    outDir: 'dist',
    rootDir: '.',
  },
  files: ['program.ts'],
}

let folder: string
let running: TestService
beforeAll(async () => {
  folder = await makeTempFolder('packed-client')
  running = await startTestService()
})
afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

it('installs, compiles and calls outside of the workspace', async () => {
  const npm = (cwd: string, ...args: string[]) => run('npm', args, { cwd })
  await npm(root, 'pack', '--workspace', '@waybill/client', '--pack-destination', folder)
  const [tarball = ''] = globSync('waybill-client-*.tgz', { cwd: folder })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(SETTINGS))
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  await npm(
    folder,
    'install',
    '--no-audit',
    '--no-fund',
    '--engine-strict',
    `./${tarball}`,
    'typescript',
    '@types/node',
  )
  await npm(folder, 'exec', 'tsc')
  const { stdout } = await run('node', ['dist/program.js', running.url, running.keys.shop], { cwd: folder })
  expect(JSON.parse(stdout)).toEqual({ payments: 0, reasons: ['INVALID_ADDRESS', 'INVALID_ADDRESS'] })
})
