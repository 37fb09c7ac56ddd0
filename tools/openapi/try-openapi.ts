/**
 * Tries the description of the API from outside. Six generators make clients of it, which are compiled and call a demo. Programs of PyPI:
 * openapi-spec-validator judges both documents, and schemathesis calls the demo with requests made of the description, valid and invalid ones.
 * It fails on a server error, and on an answer outside of the description. What is not installed here is skipped and named.
 *
 *   npm run try:openapi                     two minutes of calls
 *   npm run try:openapi -- --seconds 600 --seed 7
 *   npm run try:openapi -- --seconds 0 --generators Java      the generators alone, of those the ones whose name has the word
 */
import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startWaybill } from '../../test/support/process.ts'
import { makeTempFolder } from '../../test/support/temp-folder.ts'
import { fetchOnce, tryGenerators } from './try-generators.ts'

const packages = ['openapi-spec-validator==0.9.0', 'schemathesis==4.32.5']
const root = resolve(import.meta.dirname, '../..')
const python = join(root, 'node_modules/.cache/try-openapi/schemathesis')

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
    generators: { type: 'string', default: '' },
  },
})

process.exitCode = await tryDescription()

/** @returns why the packages are not there; undefined if they are */
function installPackages(): string | undefined {
  if (spawnSync('python3', ['--version']).error !== undefined) return 'Python is not installed'
  if (run('python3', ['-m', 'venv', python]) !== 0) return 'Python has no venv'
  const installed = run(join(python, 'bin/pip'), ['install', '--quiet', ...packages])
  return installed === 0 ? undefined : `${packages.join(' and ')} cannot be installed`
}

function run(file: string, args: readonly string[], more: { cwd?: string; env?: Record<string, string> } = {}): number {
  const env = { ...process.env, ...more.env }
  return spawnSync(file, args, { stdio: 'inherit', ...more, env }).status ?? 1
}

/** @returns the exit code */
async function tryDescription(): Promise<number> {
  const folder = await makeTempFolder('try-openapi')
  const demo = startWaybill(['serve'], { DATA_DIR: join(folder, 'data'), PORT: '0', LOG_LEVEL: 'warn' })
  try {
    await demo.says(/Ctrl-C/)
    const { baseUrl, ...known } = JSON.parse(await readFile(join(folder, 'data/demo.json'), 'utf8')) as DemoFile
    const [request] = known.requests
    const { payee } = (await (await fetchOnce(`${baseUrl}/v1/request/${request?.paymentReference}`)).json()) as {
      payee: string
    }
    const demoToCall = { baseUrl, wallet: known.wallets.direct.address, payee }
    const areGood = await tryGenerators(folder, demoToCall, values.generators)
    const isDescribed = values.seconds === '0' || (await judgeAndCall(baseUrl, known, folder))
    return areGood && isDescribed ? 0 : 1
  } finally {
    demo.kill('SIGTERM')
    await demo.ended
    await rm(folder, { recursive: true })
  }
}

/** @returns whether the validator and schemathesis found nothing */
async function judgeAndCall(baseUrl: string, known: Omit<DemoFile, 'baseUrl'>, folder: string): Promise<boolean> {
  const missing = installPackages()
  if (missing !== undefined) {
    console.log(`openapi-spec-validator and schemathesis: skipped, since ${missing}`)
    return true
  }
  const judged = await Promise.all(['openapi.json', 'openapi-3.2.json'].map((name) => judge(baseUrl, name, folder)))
  const examples = JSON.stringify(await realExamples(baseUrl, known))
  const tried = run(join(python, 'bin/schemathesis'), argumentsOf(baseUrl), {
    cwd: folder,
    env: { SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: join(root, 'tools/openapi'), WAYBILL_EXAMPLES: examples },
  })
  return judged.every((code) => code === 0) && tried === 0
}

interface DemoFile {
  readonly baseUrl: string
  readonly wallets: { readonly direct: { readonly address: string } }
  readonly requests: readonly { readonly paymentReference: string; readonly requestId: string }[]
}

/** @returns the exit code of the validator */
async function judge(baseUrl: string, name: string, folder: string): Promise<number> {
  const answer = await fetchOnce(`${baseUrl}/${name}`)
  const file = join(folder, name)
  await writeFile(file, await answer.text())
  return run(join(python, 'bin/python'), ['-m', 'openapi_spec_validator', file])
}

/** What the demo has of the things that examples name. */
async function realExamples(baseUrl: string, { wallets, requests }: Omit<DemoFile, 'baseUrl'>) {
  const answer = await fetchOnce(`${baseUrl}/payments?limit=1`)
  const { payments } = (await answer.json()) as { payments: readonly { id: string; txHash: string }[] }
  const [payment] = payments
  const [request] = requests
  return {
    BASE: 'ETHEREUM',
    'eip155:8453': 'ETHEREUM',
    'arbitrum-one': 'ARBITRUM',
    '0x1122334455667788': request?.paymentReference ?? '',
    '0x70997970C51812dc3A010C7d01b50e0d17dc79C8': wallets.direct.address,
    '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11': payment?.id ?? '',
    '0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060': payment?.txHash ?? '',
    '01a7ff1f2b1a1ccd0b8a9b1a6fbc6f0a6be0e6ac5b2d1d3c8c96b8bd0a8a7f6e5d': request?.requestId ?? '',
  }
}

function argumentsOf(baseUrl: string): readonly string[] {
  const config = join(root, 'tools/openapi/schemathesis.toml')
  const amount = `--seed ${values.seed} --max-time ${values.seconds} --max-examples 25`
  const how = `--phases examples,coverage,fuzzing,stateful ${amount} --continue-on-failure --no-color`
  return ['--config-file', config, 'run', `${baseUrl}/openapi.json`, '--header', 'x-api-key: demo', ...how.split(' ')]
}
