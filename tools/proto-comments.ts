/** Reads the comments of proto/, which descriptors at run time do not have, for the generated file that keeps them. */
import { execFileSync } from 'node:child_process'
import { fromBinary } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'

const OURS = /^(?:payments|demo)\.v1$/

/**
 * The comments of `payments.v1` and `demo.v1` by the names of what they describe: `payments.v1.Payment.Status.PENDING`. One line a
 * paragraph, an empty line between two.
 *
 * @param root - the project's folder
 */
export function readProtoComments(root: string): ReadonlyMap<string, string> {
  const image = execFileSync('buf', ['build', 'proto', '-o', '-#format=binpb'], { cwd: root })
  const { file: files } = fromBinary(FileDescriptorSetSchema, image)
  return new Map(files.filter((file) => OURS.test(file.package)).flatMap(commentsOf))
}

/** A module that exports the comments, and its declarations. The same comments give the same text. */
export function printComments(comments: ReadonlyMap<string, string>): { readonly js: string; readonly dts: string } {
  const head =
    '// Comments of proto/, by the full name of what they describe. Written by tools/generate.ts. Do not edit.\n'
  const sorted = [...comments].toSorted(([left], [right]) => (left < right ? -1 : 1))
  const lines = sorted.map(([name, comment]) => `  ${JSON.stringify(name)}: ${JSON.stringify(comment)},\n`)
  return {
    js: `${head}export const comments = {\n${lines.join('')}}\n`,
    dts: `${head}export declare const comments: Readonly<Record<string, string>>\n`,
  }
}

/** A path is a place in a FileDescriptorProto: numbers of fields and indexes, alternating. */
function commentsOf(file: FileDescriptorProto): [string, string][] {
  const texts = new Map(
    file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join('.'), unwrap(leadingComments)]),
  )
  const all = (path: string, prefix: string, descs: readonly AnyDescriptor[], within: Within = () => []) =>
    descs.flatMap((desc, index): [string, string][] => {
      // The compiler makes the entries of a map; nobody wrote them.
      if (desc.options !== undefined && 'mapEntry' in desc.options && desc.options.mapEntry === true) return []
      const [at, name] = [`${path}.${index}`, `${prefix}${desc.name}`]
      return [[name, texts.get(at) ?? ''], ...within(desc, at, `${name}.`)]
    })
  const ofEnum: Within = ({ value = [] }, at, prefix) => all(`${at}.2`, prefix, value)
  const ofMessage: Within = ({ field = [], nestedType = [], enumType = [] }, at, prefix) => [
    ...all(`${at}.2`, prefix, field),
    ...all(`${at}.3`, prefix, nestedType, ofMessage),
    ...all(`${at}.4`, prefix, enumType, ofEnum),
  ]
  const ofService: Within = ({ method = [] }, at, prefix) => all(`${at}.2`, prefix, method)
  const within = `${file.package}.`
  return [
    ...all('4', within, file.messageType, ofMessage),
    ...all('5', within, file.enumType, ofEnum),
    ...all('6', within, file.service, ofService),
    ...all('7', within, file.extension),
  ]
}

function unwrap(comment: string): string {
  const paragraphs = comment.split(/\n\s*\n/).map((paragraph) => paragraph.replaceAll(/\s+/g, ' ').trim())
  return paragraphs.filter((paragraph) => paragraph !== '').join('\n\n')
}

interface Named {
  readonly name: string
}

/** What a file, message, enum or service descriptor has of these. */
interface AnyDescriptor extends Named {
  readonly field?: readonly Named[]
  readonly nestedType?: readonly AnyDescriptor[]
  readonly enumType?: readonly AnyDescriptor[]
  readonly value?: readonly Named[]
  readonly method?: readonly Named[]
  readonly options?: object | undefined
}

type Within = (desc: AnyDescriptor, at: string, prefix: string) => [string, string][]
