import { readFileSync } from 'node:fs'
import { cp, mkdir, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/** What the image has of this project, as deploy/Dockerfile copies it into its last stage: what it leaves out is missed. Packages and Node are those installed here. */
export async function writeImageTree(folder: string): Promise<void> {
  const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8')
  const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  const copied = [...last.matchAll(/^COPY (?!--from)(.*) (\S+)$/gm)].flatMap(([, from = '']) => from.split(' '))
  for (const path of [...copied, 'apps/dist', 'tools/with-node']) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await cp(join(ROOT, path), join(folder, path), {
      recursive: true,
      filter: (each) => !each.includes('node_modules'),
    })
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}
