/**
 * Writes the image of proto/ from which the code of the published client is generated. Options that only the server reads are left out
 * (rules of validation, bindings of HTTP, comma_separated), because their descriptors are three times as large as ours; so are the details of
 * errors that the client never reads.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'

const OPTIONS_FILE = 'payments/v1/options.proto'

const ERROR_DETAILS = 'google/rpc/error_details.proto'
/** The details of errors that the client reads, and what they hold. */
const READ_DETAILS = new Set(['ErrorInfo', 'RetryInfo', 'BadRequest', 'LocalizedMessage'])

/** Files of the server or its demo alone, which no file of the client needs once its options are gone. */
const isLeftOut = (name: string) =>
  name === OPTIONS_FILE || /^(?:buf|demo|google\/api|google\/rpc\/(?:code|status)|grpc)\b/.test(name)

/**
 * @param root - the project's folder
 * @param path - where to write the image
 */
export function writeClientImage(root: string, path: string): void {
  const bytes = execFileSync('buf', ['build', '-o', '-#format=binpb'], { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const image = fromBinary(FileDescriptorSetSchema, bytes)
  image.file = image.file.filter(({ name }) => !isLeftOut(name))
  for (const file of image.file) strip(file)
  writeFileSync(path, toBinary(FileDescriptorSetSchema, image))
}

function strip(file: FileDescriptorProto): void {
  file.dependency = file.dependency.filter((name) => !isLeftOut(name))
  delete file.options
  if (file.name === ERROR_DETAILS) file.messageType = file.messageType.filter(({ name }) => READ_DETAILS.has(name))
  for (const message of file.messageType) stripMessage(message)
  // Extensions are unknown fields here; the idempotency level is not.
  for (const { method } of file.service) for (const { options } of method) if (options) delete options.$unknown
}

function stripMessage(message: DescriptorProto): void {
  for (const field of message.field) delete field.options
  message.reservedRange = []
  message.reservedName = []
  for (const nested of message.nestedType) stripMessage(nested)
}
