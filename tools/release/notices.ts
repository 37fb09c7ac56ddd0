import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The licences of all packages that the service needs at run time, optional ones included where they are installed. */
export function noticesOfPackages(root: string): string {
  const args = ['ls', '--all', '--parseable', '--omit=dev']
  const folders = execFileSync('npm', args, { cwd: root, encoding: 'utf8' }).trim().split('\n')
  const packages = [...new Set(folders)].filter((folder) => folder.includes('node_modules')).toSorted()
  return packages.map(noticeOf).join('\n')
}

function noticeOf(folder: string): string {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return ''
  const { name, version, license } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  const texts = readdirSync(folder)
    .filter((each) => /^(?:licen[cs]e|copying|notice)/i.test(each))
    .map((each) => readFileSync(join(folder, each), 'utf8').trim())
  const text = texts.length > 0 ? texts.join('\n\n') : `The package has no text of its licence, ${String(license)}.`
  return `${'='.repeat(80)}\n${name} ${version} (${String(license)})\n\n${text}\n`
}
