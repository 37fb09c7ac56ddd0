/** The checks that look at the repository as a whole; run by tools/check.ts. */
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findDeadLinks, findUnknownFiles } from './check-links.ts'
import { type CheckResult, readGit, root, runCommand } from './run-command.ts'

/** Checks proto/ for breaking changes against the last release, whose descriptors `npm run protos:release` wrote. */
export function checkBreaking(): Promise<CheckResult> {
  return runCommand('buf', ['breaking', 'proto', '--against', 'proto/released.binpb'])
}

/** Generates the code into a temporary folder and compares it with gen/ in the work tree. */
export async function checkGenerated(): Promise<CheckResult> {
  return inTemporaryFolder(async (folder) => {
    const generated = await runCommand('node', [join(root, 'tools/generate.ts'), folder])
    if (generated.outcome !== 'ok') return generated
    const compared = await runCommand('diff', ['-ru', 'gen', join(folder, 'gen')])
    if (compared.outcome === 'ok') return compared
    return { outcome: 'failed', output: `gen/ is not what proto/ generates; run npm run generate\n${compared.output}` }
  })
}

/** Reports dead links between documents, and files that documents about the code name and that do not exist. */
export async function checkLinks(): Promise<CheckResult> {
  const paths = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'deploy/*.md', 'test/cases/**/*.md'], { cwd: root })
  const files = globSync('{src,apps,demo,deploy,proto,test,tools,docs,bench,clients/*/src}/**/*.*', { cwd: root })
  const aboutCode = globSync(['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/internals/*.md'], { cwd: root }).toSorted()
  const unknown = aboutCode.flatMap((path) => findUnknownFiles(path, readFileSync(join(root, path), 'utf8'), files))
  const faults = [...findDeadLinks(root, paths.toSorted()), ...unknown]
  return { outcome: faults.length === 0 ? 'ok' : 'failed', output: faults.join('\n') }
}

/** A lock file with download addresses would make every install use the registry of the machine that wrote it. */
export async function checkLockFile(): Promise<CheckResult> {
  const addresses = findDownloadAddresses(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return report(addresses.map((address) => `package-lock.json: ${address}`))
}

/** @returns one line per package of a package-lock.json that names where it is downloaded from */
export function findDownloadAddresses(lockFile: string): string[] {
  const { packages } = JSON.parse(lockFile) as { packages: Record<string, { resolved?: string; version?: string }> }
  return Object.entries(packages)
    .filter(([, { resolved, version }]) => [resolved, version].some((value) => value?.includes('://')))
    .map(([path, { resolved, version }]) => `${path} comes from ${resolved ?? version}`)
}

/** Files in git name no package registry's host: where packages come from is the installing machine's business. */
export async function checkRegistryHosts(): Promise<CheckResult> {
  const listed = await readGit(root, 'ls-files', '--cached', '--others', '--exclude-standard', '-z')
  if (listed === undefined) return { outcome: 'skipped', output: 'git finds no repository here' }
  const paths = listed.split('\0').filter((path) => path !== '')
  return report(paths.flatMap((path) => findRegistryHosts(readText(path)).map((found) => `${path}:${found}`)))
}

/** @returns `line: text` for each line that names a registry's host or sets one */
export function findRegistryHosts(text: string): string[] {
  const host =
    /\b(?:registry|npm|pkgs?|packages|artifactory|nexus|verdaccio)(?:\.[a-z0-9-]+)+\.(?:com|org|net|io|dev|cloud)\b/i
  const setting = /^\s*(?:@[\w-]+:)?registry\s*=/
  return text.split('\n').flatMap((line, index) => {
    const found = host.exec(line)?.[0] ?? setting.exec(line)?.[0]
    return found === undefined ? [] : [`${index + 1}: ${found.trim()}`]
  })
}

/** A file removed but not yet committed reads as empty. */
function readText(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

function report(findings: readonly string[]): CheckResult {
  return { outcome: findings.length === 0 ? 'ok' : 'failed', output: findings.join('\n') }
}

async function inTemporaryFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-check-'))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
