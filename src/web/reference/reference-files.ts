import { join } from 'node:path'
import type { OpenFile, OpenFiles } from '../../api/http/open-files.ts'
import type { DescribeApi, Pages } from './make-pages.ts'

const paths = ['/openapi.json', '/openapi-3.2.json', '/llms.txt', '/docs']

const projectFolder = join(import.meta.dirname, '../../..')

/**
 * The description of the API and the documentation, made when they are first asked for: a start does not wait for them.
 *
 * @param loadDescribe - loads what describes the API
 */
export function createReferenceFiles(loadDescribe: () => Promise<DescribeApi>): OpenFiles {
  let pages: Promise<Pages> | undefined
  const made = new Map<string, OpenFile>()

  async function make(): Promise<Pages> {
    const [{ makePages }, describe] = await Promise.all([import('./make-pages.ts'), loadDescribe()])
    return makePages(projectFolder, describe)
  }

  return {
    paths,
    covers: (rawPath) => paths.includes(rawPath) || rawPath.startsWith('/docs/'),
    async read(rawPath) {
      const before = made.get(rawPath)
      if (before !== undefined) return before
      pages ??= make()
      const found = await pages.catch((error: unknown) => {
        pages = undefined
        throw error
      })
      const makeFile = found.get(rawPath)
      if (makeFile === undefined)
        return found.has(withoutSlash(rawPath)) ? { location: withoutSlash(rawPath) } : undefined
      const file = makeFile()
      made.set(rawPath, file)
      return file
    },
  }
}

function withoutSlash(rawPath: string): string {
  return rawPath.replace(/\/+$/, '')
}
