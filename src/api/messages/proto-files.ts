import type { DescFile, DescService } from '@bufbuild/protobuf'
import { file_google_rpc_error_details as errorDetailsFile } from '../../../gen/google/rpc/error_details_pb.js'
import { file_google_rpc_status as statusFile } from '../../../gen/google/rpc/status_pb.js'

/**
 * The files of services and all that they import, with the types of error details. No service names those, but clients such as grpcurl need
 * them to show the details of an error.
 */
export function filesOf(services: readonly DescService[]): readonly DescFile[] {
  return importsFirst([...services.map((service) => service.file), errorDetailsFile, statusFile])
}

/** The files with all that they import, each once and after its own imports, as readers of descriptor sets want it. */
export function importsFirst(files: readonly DescFile[], found = new Set<DescFile>()): readonly DescFile[] {
  for (const file of files) {
    if (found.has(file)) continue
    importsFirst(file.dependencies, found)
    found.add(file)
  }
  return [...found]
}
