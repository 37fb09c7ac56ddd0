/**
 * Generates clients from a demo's /openapi.json with the commands of docs/guides/generate-a-client.md, compiles them, and makes five calls with
 * each. What is missing here is skipped and named.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { appendFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../run-command.ts'

const GUIDE = 'docs/guides/generate-a-client.md'
const PROGRAMS = join(root, 'tools/openapi/clients')
const CACHE = join(root, 'node_modules/.cache/try-openapi')

const OPENAPI_GENERATOR = '7.25.0'
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const HEY_API = ['@hey-api/openapi-ts@0.99.0', 'typescript@5.9.3']
const PYTHON_CLIENT = 'openapi-python-client==0.29.1'

/** The demo that is called. */
export interface CalledDemo {
  readonly baseUrl: string
  /** A wallet that can pay. */
  readonly wallet: string
  readonly payee: string
}

interface Try {
  /** A folder of its own. */
  readonly folder: string
  readonly demo: CalledDemo
  /** Runs a command in the folder. @throws Error with its output when it fails */
  readonly run: (file: string, ...args: string[]) => string
  /** Runs the guide's command of a generator; `file` and `args` take the place of its first word. */
  readonly generate: (nth: RegExp, file: string, ...args: string[]) => Promise<void>
}

interface Generator {
  readonly name: string
  /** Programs that must be there, each by a call that succeeds. */
  readonly needs: readonly (readonly [file: string, arg: string])[]
  /** Generates, compiles and calls. */
  readonly tried: (with_: Try) => Promise<void>
}

const java = [
  ['java', '-version'],
  ['mvn', '-v'],
] as const
const go = ['go', 'version'] as const
const npm = ['npm', '-v'] as const

const generators: readonly Generator[] = [
  {
    name: 'openapi-generator, Go',
    needs: [...java, go],
    async tried({ folder, run, generate }) {
      await generate(/^openapi-generator-cli .* -g go /, 'java', '-jar', openapiGenerator(run))
      const client = join(folder, 'waybill')
      await mkdir(join(client, 'calls'))
      await cp(join(PROGRAMS, 'openapi-generator.go'), join(client, 'calls/main.go'))
      run('go', '-C', 'waybill', 'mod', 'tidy')
      run('go', '-C', 'waybill', 'vet', '.')
      makeCalls(run('go', '-C', 'waybill', 'run', './calls'))
    },
  },
  {
    name: 'openapi-generator, Java',
    needs: java,
    async tried({ folder, run, generate }) {
      await generate(/^openapi-generator-cli .* -g java /, 'java', '-jar', openapiGenerator(run))
      await cp(join(PROGRAMS, 'Calls.java'), join(folder, 'waybill/src/main/java/Calls.java'))
      const pom = ['-q', '-B', '-f', 'waybill/pom.xml']
      run('mvn', ...pom, '-DskipTests', 'compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath.txt')
      const libraries = (await readFile(join(folder, 'waybill/classpath.txt'), 'utf8')).trim()
      makeCalls(run('java', '-cp', `waybill/target/classes:${libraries}`, 'Calls'))
    },
  },
  {
    name: 'openapi-generator, TypeScript',
    needs: [...java, npm],
    async tried({ folder, run, generate }) {
      await generate(/^openapi-generator-cli .* -g typescript-fetch /, 'java', '-jar', openapiGenerator(run))
      await cp(join(PROGRAMS, 'openapi-generator.ts.txt'), join(folder, 'calls.ts'))
      await compileTypeScript(folder, run)
      makeCalls(run('node', 'out/calls.js'))
    },
  },
  {
    name: 'oapi-codegen',
    needs: [go],
    async tried({ folder, run, generate }) {
      await mkdir(join(folder, 'waybill'))
      await generate(/^oapi-codegen /, 'go', 'run', OAPI_CODEGEN)
      await mkdir(join(folder, 'calls'))
      await cp(join(PROGRAMS, 'oapi-codegen.go'), join(folder, 'calls/main.go'))
      await writeFile(join(folder, 'go.mod'), 'module example.org/shop\n\ngo 1.24\n')
      run('go', 'mod', 'tidy')
      run('go', 'vet', './waybill')
      makeCalls(run('go', 'run', './calls'))
    },
  },
  {
    name: '@hey-api/openapi-ts',
    needs: [npm],
    async tried({ folder, run, generate }) {
      await installTypeScript(run)
      await generate(/^npx openapi-ts /, join(CACHE, 'npm/node_modules/.bin/openapi-ts'))
      await cp(join(PROGRAMS, 'hey-api.ts.txt'), join(folder, 'calls.ts'))
      await compileTypeScript(folder, run)
      makeCalls(run('node', 'out/calls.js'))
    },
  },
  {
    name: 'openapi-python-client',
    needs: [['python3', '--version']],
    async tried({ folder, run, generate }) {
      const python = join(CACHE, 'python-client')
      run('python3', '-m', 'venv', python)
      run(join(python, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', PYTHON_CLIENT)
      await generate(/^openapi-python-client /, join(python, 'bin/openapi-python-client'))
      await cp(join(PROGRAMS, 'calls.py'), join(folder, 'calls.py'))
      run(join(python, 'bin/python'), '-m', 'compileall', '-q', 'client')
      makeCalls(run(join(python, 'bin/python'), 'calls.py'))
    },
  },
]

/** Tries the generators whose names have the word, one after the other. @returns whether none failed */
export async function tryGenerators(folder: string, demo: CalledDemo, word: string): Promise<boolean> {
  let isGood = true
  for (const [nth, { name, needs, tried }] of generators.entries()) {
    if (!name.includes(word)) continue
    const missing = needs.find(([file, arg]) => spawnSync(file, [arg]).status !== 0)
    if (missing !== undefined) {
      console.log(`${name}: skipped, since ${missing[0]} is not installed`)
      continue
    }
    const own = join(folder, `generator-${nth}`)
    await mkdir(own)
    try {
      await tried(createTry(own, demo))
      console.log(`${name}: generated, compiled, five calls`)
    } catch (error) {
      isGood = false
      console.log(`${name}: failed\n${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return isGood
}

/** Fetches over a connection of its own: one that is kept may be closed while a program runs and this process waits for it. */
export function fetchOnce(url: string): Promise<Response> {
  return fetch(url, { headers: { 'x-api-key': 'demo', connection: 'close' } })
}

function createTry(folder: string, demo: CalledDemo): Try {
  const { baseUrl, wallet, payee } = demo
  const called = { WAYBILL_URL: baseUrl, WAYBILL_KEY: 'demo', WALLET: wallet, PAYEE: payee }
  const run = (file: string, ...args: string[]) => {
    const env = { ...process.env, ...called, NO_COLOR: '1' }
    const { status, stdout, stderr, error } = spawnSync(file, args, {
      cwd: folder,
      env,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    })
    if (status === 0) return stdout
    throw new Error(
      `${file} ${args.join(' ')}: ${error?.message ?? ''}\n${stdout.slice(-3_000)}\n${stderr.slice(-3_000)}`,
    )
  }
  return {
    folder,
    demo,
    run,
    async generate(pattern, file, ...args) {
      const lines = (await readFile(join(root, GUIDE), 'utf8')).split('\n')
      const command = lines.find((line) => pattern.test(line))
      if (command === undefined) throw new Error(`${GUIDE} has no command ${String(pattern)}`)
      await writeFile(join(folder, 'openapi.json'), await (await fetchOnce(`${baseUrl}/openapi.json`)).text())
      const words = command.replaceAll('http://HOST', baseUrl).replace(/^npx /, '').split(' ').slice(1)
      run(file, ...args, ...words)
    },
  }
}

/** @throws Error unless the calls were made */
function makeCalls(output: string): void {
  if (!/^five calls$/m.test(output)) throw new Error(`not all calls were made: ${output}`)
}

/** @returns the path of the program, which Maven fetches once */
function openapiGenerator(run: Try['run']): string {
  const file = join(CACHE, `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`)
  if (existsSync(file)) return file
  const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`
  run('mvn', '-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${CACHE}`)
  return file
}

async function installTypeScript(run: Try['run']): Promise<void> {
  const folder = join(CACHE, 'npm')
  await mkdir(folder, { recursive: true })
  run(
    'npm',
    'install',
    '--silent',
    '--no-audit',
    '--no-fund',
    '--no-save',
    '--prefix',
    folder,
    ...HEY_API,
    '@types/node@24',
  )
}

/** Compiles calls.ts and the client to `out`, with TypeScript as a user has it. */
async function compileTypeScript(folder: string, run: Try['run']): Promise<void> {
  await installTypeScript(run)
  const types = join(CACHE, 'npm/node_modules/@types')
  const compilerOptions = {
    strict: true,
    target: 'es2022',
    module: 'commonjs',
    moduleResolution: 'node',
    lib: ['es2022', 'dom', 'dom.iterable'],
    outDir: 'out',
    typeRoots: [types],
    types: ['node'],
    skipLibCheck: true,
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['calls.ts'] }))
  await appendFile(join(folder, 'package.json'), '{}\n')
  run(join(CACHE, 'npm/node_modules/.bin/tsc'), '-p', '.')
}
