/**
 * Fills proto_vendor/ with the third-party protos that proto/ imports or that the service serves, from npm packages at
 * pinned versions, so that no file there is written by hand and no schema registry is needed to build.
 *
 *   npm run vendor-protos            writes proto_vendor/ from scratch (needs npm's access to packages)
 *   npm run vendor-protos -- DIR     writes DIR instead, to compare
 *
 * The packages are unpacked into a temporary folder and are not dependencies: google-proto-files alone has 83 MB.
 * No package contains buf/validate/validate.proto as source, so it is printed from the descriptor in @bufbuild/protovalidate; the printed
 * file is compiled and compared with that descriptor.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { clone, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { file_buf_validate_validate as validateFile } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { printProto } from './print-proto.ts'

type VendoredPackage = {
  /** name@version, as npm takes it */
  readonly spec: string
  /** SHA-512 of the tarball, as package-lock.json writes it */
  readonly integrity: string
  /** path in proto_vendor/ → path in the package */
  readonly files: Readonly<Record<string, string>>
}

const packages: readonly VendoredPackage[] = [
  {
    spec: 'google-proto-files@6.0.1',
    integrity: 'sha512-fbvUWVNh3rKGlVFWwlUNF7Sk1Tah0a89q02rLTXsWjbKKHGeuURAa8tl9rvu5TyWny1YiSIo5eDqF260Tai6vQ==',
    files: {
      'google/api/annotations.proto': 'google/api/annotations.proto',
      'google/api/http.proto': 'google/api/http.proto',
      'google/rpc/code.proto': 'google/rpc/code.proto',
      'google/rpc/error_details.proto': 'google/rpc/error_details.proto',
      'google/rpc/status.proto': 'google/rpc/status.proto',
    },
  },
  {
    spec: 'grpc-health-check@2.1.0',
    integrity: 'sha512-HH3WjwNtusMTEQAtRelFgsFyNcOdihvpjusNDIrGYfWG8tPNSHqELrSyriIjm70k65YSxetsKG1y4H1L5gi1wQ==',
    files: { 'grpc/health/v1/health.proto': 'proto/health/v1/health.proto' },
  },
  {
    spec: '@grpc/reflection@1.0.4',
    integrity: 'sha512-znA8v4AviOD3OPOxy11pxrtP8k8DanpefeTymS8iGW1fVr1U2cHuzfhYqDPHnVNDf4qvF9E25KtSihPy2DBWfQ==',
    files: {
      'grpc/reflection/v1/reflection.proto': 'build/proto/grpc/reflection/v1/reflection.proto',
      'grpc/reflection/v1alpha/reflection.proto': 'build/proto/grpc/reflection/v1alpha/reflection.proto',
    },
  },
]

const root = resolve(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? join(root, 'proto_vendor'))
const temp = mkdtempSync(join(tmpdir(), 'waybill-vendor-'))
try {
  rmSync(target, { recursive: true, force: true })
  for (const vendored of packages) copyFrom(vendored, unpack(vendored))
  writeValidateProto()
} finally {
  rmSync(temp, { recursive: true, force: true })
}

/** Downloads one package's tarball, checks its hash and unpacks it; returns the folder. */
function unpack({ spec, integrity }: VendoredPackage): string {
  const packed = execFileSync('npm', ['pack', spec, '--json', '--pack-destination', temp], {
    cwd: temp,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const { filename } = firstPacked(JSON.parse(packed))
  const tarball = join(temp, filename.replace('@', '').replace('/', '-'))
  const actual = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  if (actual !== integrity) throw new Error(`${spec} has hash ${actual}, expected ${integrity}`)
  const folder = join(temp, `${spec.replaceAll('/', '-')}.d`)
  mkdirSync(folder)
  execFileSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
  return folder
}

/** Parses the only package in npm's output, which is a list or an object by name, depending on npm's version. */
function firstPacked(packed: Record<string, { filename: string }>): { filename: string } {
  const first = Object.values(packed)[0]
  if (first === undefined) throw new Error('npm pack printed no package')
  return first
}

function copyFrom({ spec, files }: VendoredPackage, folder: string): void {
  for (const [to, from] of Object.entries(files)) {
    const text = readFileSync(join(folder, from), 'utf8')
    if (!/^\/\/ Copyright /m.test(text)) throw new Error(`${spec}: ${from} has lost its licence header`)
    const destination = join(target, to)
    mkdirSync(dirname(destination), { recursive: true })
    cpSync(join(folder, from), destination)
  }
}

/** Prints buf/validate/validate.proto under the licence header of the generated code it is printed from. */
function writeValidateProto(): void {
  const generated = readFileSync(
    new URL(import.meta.resolve('@bufbuild/protovalidate/gen/buf/validate/validate_pb.js')),
    'utf8',
  )
  const licence = /^(?:\/\/.*\n)+/.exec(generated)?.[0]
  if (licence === undefined) throw new Error('@bufbuild/protovalidate: the generated code has lost its licence header')
  const destination = join(target, validateFile.proto.name)
  mkdirSync(dirname(destination), { recursive: true })
  const origin = '// Printed from the descriptor in @bufbuild/protovalidate, which keeps no comments.\n'
  writeFileSync(destination, `${licence}\n${origin}\n${printProto(validateFile.proto)}`)
  checkPrint(validateFile.proto)
}

/** @throws when compiling the printed file does not give the descriptor that it was printed from */
function checkPrint(original: FileDescriptorProto): void {
  const set = join(temp, 'validate.binpb')
  execFileSync('buf', ['build', target, '--as-file-descriptor-set', '--exclude-source-info', '-o', set], { cwd: temp })
  const files = fromBinary(FileDescriptorSetSchema, readFileSync(set)).file
  const compiled = files.find((file) => file.name === original.name)
  if (compiled === undefined) throw new Error(`${original.name} was not compiled`)
  if (!comparable(compiled).equals(comparable(original))) {
    throw new Error(`${original.name}: the printed file does not compile to the descriptor it was printed from`)
  }
}

/** The descriptor's bytes without `syntax` for proto2, which compilers may omit. */
function comparable(file: FileDescriptorProto): Buffer {
  const copy = clone(FileDescriptorProtoSchema, file)
  copy.syntax ||= 'proto2'
  return Buffer.from(toBinary(FileDescriptorProtoSchema, copy))
}
