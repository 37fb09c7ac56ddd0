import { execFileSync } from 'node:child_process'
import { createFileRegistry, type FileRegistry, fromBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'

/** Compiles the proto files of a folder with the buf that the project pins, for tests of code that works on descriptors. Takes about 0.1 s. */
export function compileProtos(folder: string): FileRegistry {
  const image = execFileSync('buf', ['build', folder, '--config', '{"version":"v2"}', '-o', '-#format=binpb'])
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, image))
}
