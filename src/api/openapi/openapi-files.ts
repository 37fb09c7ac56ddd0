import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServedService } from '../calls/served-method.ts'
import type { OpenFile, OpenFiles } from '../http/open-files.ts'
import type { OpenApiVersion } from './answer-content.ts'

const versions: Readonly<Record<string, OpenApiVersion>> = { '/openapi.json': '3.1', '/openapi-3.2.json': '3.2' }
const packageFile = join(import.meta.dirname, '../../../package.json')

/** The description of the API, made when it is first asked for: a start does not wait for it. */
export function createOpenApiFiles(services: readonly ServedService[]): OpenFiles {
  const made = new Map<string, Promise<OpenFile>>()

  async function describe(version: OpenApiVersion): Promise<OpenFile> {
    const [{ describeApi }, text] = await Promise.all([import('./describe-api.ts'), readFile(packageFile, 'utf8')])
    const { version: release } = JSON.parse(text) as { version: string }
    const body = JSON.stringify(describeApi({ services, version, release }))
    return { contentType: 'application/json', body, etag: `W/"${hash('sha256', body, 'base64url').slice(0, 12)}"` }
  }

  return {
    paths: Object.keys(versions),
    covers: (path) => Object.hasOwn(versions, path),
    async read(path) {
      const version = versions[path]
      if (version === undefined) return undefined
      const making = made.get(path) ?? describe(version)
      made.set(path, making)
      return making.catch((error: unknown) => {
        made.delete(path)
        throw error
      })
    },
  }
}
