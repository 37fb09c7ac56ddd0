/**
 * Compiles the demo's own contracts to the JSON that is committed beside their sources. npm installs the compiler into a temporary folder:
 * it is needed only when a source changes, so it is not a dependency of the project.
 *
 *   tools/with-node node tools/compile-contracts.ts           writes demo/contracts/*.json
 *   tools/with-node node tools/compile-contracts.ts --check   ends with 1 where a committed file differs
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CompiledContract, writeContractFiles } from './contract-files.ts'

const SOLC_VERSION = '0.8.30'
/** Older than the compiler's default, so that the bytecode also runs on chains that lag behind. */
const EVM_VERSION = 'paris'

interface CompilerOutput {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: Record<string, Record<string, { abi: readonly unknown[]; evm: { bytecode: { object: string } } }>>
}

const folder = fileURLToPath(new URL('../demo/contracts/', import.meta.url))
const sources = readdirSync(folder).filter((file) => file.endsWith('.sol'))
const notice = readFileSync(fileURLToPath(new URL('../LICENSE', import.meta.url)), 'utf8').trim()

function compile(): CompilerOutput {
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(sources.map((file) => [file, { content: readFileSync(join(folder, file), 'utf8') }])),
    settings: {
      optimizer: { enabled: true, runs: 200 },
      evmVersion: EVM_VERSION,
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const emptyFolder = mkdtempSync(join(tmpdir(), 'waybill-solc-'))
  try {
    const answer = execFileSync('npx', ['--yes', '-p', `solc@${SOLC_VERSION}`, 'solcjs', '--standard-json'], {
      cwd: emptyFolder,
      input: JSON.stringify(input),
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    // solcjs prints a line of its own before the JSON when it reads from a pipe.
    return JSON.parse(answer.slice(answer.indexOf('{'))) as CompilerOutput
  } finally {
    rmSync(emptyFolder, { recursive: true, force: true })
  }
}

const output = compile()
const failures = output.errors?.filter((error) => error.severity === 'error') ?? []
for (const error of output.errors ?? []) process.stderr.write(`${error.formattedMessage}\n`)
if (failures.length > 0) {
  process.exitCode = 1
} else {
  const files: Record<string, CompiledContract> = {}
  for (const source of sources) {
    const name = source.replace(/\.sol$/, '')
    const contract = output.contracts[source]?.[name]
    if (!contract) throw new Error(`${source} declares no contract ${name}: name the file after its contract`)
    // An interface has no code.
    if (contract.evm.bytecode.object === '') continue
    files[name] = {
      source: `${source}, solc ${SOLC_VERSION}, ${EVM_VERSION}`,
      license: 'MIT',
      notice,
      abi: contract.abi,
      bytecode: `0x${contract.evm.bytecode.object}`,
    }
  }
  process.exitCode = writeContractFiles(files, process.argv.includes('--check'))
}
