import { hash } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import packageFile from '../../../package.json' with { type: 'json' }
import type { ServedService } from '../calls/served-method.ts'
import type { OpenFile, OpenFiles } from '../http/open-files.ts'
import { filesOf } from '../messages/proto-files.ts'
import type { OpenApiVersion } from './answer-content.ts'

const versions: Readonly<Record<string, OpenApiVersion>> = { '/openapi.json': '3.1', '/openapi-3.2.json': '3.2' }

const DESCRIPTORS = '/descriptors.binpb'

/** The descriptions of the API, for OpenAPI and for Protobuf, made when they are first asked for: a start does not wait for them. */
export function createOpenApiFiles(services: readonly ServedService[]): OpenFiles {
  const made = new Map<string, Promise<OpenFile>>()

  async function describe(version: OpenApiVersion): Promise<OpenFile> {
    const { describeApi } = await import('./describe-api.ts')
    return fileOf('application/json', JSON.stringify(describeApi({ services, version, release: packageFile.version })))
  }

  /** A google.protobuf.FileDescriptorSet, with all that the services import. */
  async function describeProtos(): Promise<OpenFile> {
    const file = filesOf(services.map(({ service }) => service)).map(({ proto }) => proto)
    const body = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }))
    return fileOf('application/octet-stream', body)
  }

  return {
    paths: [...Object.keys(versions), DESCRIPTORS],
    covers: (path) => path === DESCRIPTORS || Object.hasOwn(versions, path),
    async read(path) {
      const version = versions[path]
      const making = made.get(path) ?? (version === undefined ? describeProtos() : describe(version))
      made.set(path, making)
      return making.catch((error: unknown) => {
        made.delete(path)
        throw error
      })
    },
  }
}

function fileOf(contentType: string, body: string | Uint8Array): OpenFile {
  return { contentType, body, etag: `W/"${hash('sha256', body, 'base64url').slice(0, 12)}"` }
}
