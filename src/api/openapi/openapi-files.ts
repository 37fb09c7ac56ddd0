import { hash } from 'node:crypto'
import { create, type DescFile, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { file_google_rpc_error_details as errorDetailsFile } from '../../../gen/google/rpc/error_details_pb.js'
import { file_google_rpc_status as statusFile } from '../../../gen/google/rpc/status_pb.js'
import packageFile from '../../../package.json' with { type: 'json' }
import type { ServedService } from '../calls/served-method.ts'
import type { OpenFile, OpenFiles } from '../http/open-files.ts'
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
    const files = importsFirst([...services.map(({ service }) => service.file), errorDetailsFile, statusFile])
    const file = files.map(({ proto }) => proto)
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

/** The files with all that they import, each once and after its own imports, as readers of descriptor sets want it. */
function importsFirst(files: readonly DescFile[]): readonly DescFile[] {
  const found = new Set<DescFile>()
  const add = (file: DescFile) => {
    if (found.has(file)) return
    for (const each of file.dependencies) add(each)
    found.add(file)
  }
  for (const file of files) add(file)
  return [...found]
}
