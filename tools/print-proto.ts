/**
 * Prints a file descriptor as .proto source. Supports what buf/validate/validate.proto uses (proto2 and proto3 messages,
 * enums, oneofs, extensions, reserved names and numbers, scalar file options, the `predefined` field option) and throws
 * on the rest. Used by tools/vendor-protos.ts, which compiles the print again and compares.
 */
import { getExtension, hasExtension, isFieldSet } from '@bufbuild/protobuf'
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
  FileOptionsSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'
import { predefined } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'

/** @param file - its descriptor; an empty `syntax` means proto2 */
export function printProto(file: FileDescriptorProto): string {
  const print = printer(file)
  const imports = file.dependency.map(
    (path, index) => `import ${file.publicDependency.includes(index) ? 'public ' : ''}"${path}";`,
  )
  return `${[
    `syntax = "${file.syntax || 'proto2'}";`,
    `package ${file.package};`,
    imports.join('\n'),
    printFileOptions(file),
    ...file.enumType.map(print.enumeration),
    ...printExtensions(file.extension, print),
    ...file.messageType.map(print.message),
  ]
    .filter((part) => part !== '')
    .join('\n\n')}\n`
}

type Printer = ReturnType<typeof printer>

function printer(file: FileDescriptorProto) {
  const proto2 = file.syntax === '' || file.syntax === 'proto2'

  function message(type: DescriptorProto): string {
    if (type.options !== undefined) throw new Error(`${type.name}: message options are not printed`)
    const lines = [
      ...type.enumType.map(enumeration),
      ...type.nestedType.map(message),
      ...type.field.flatMap((member) => (inOneof(member) ? printOneof(member, type) : field(member))),
      ...type.extensionRange.map((range) => `extensions ${range.start} to ${rangeEnd(range.end - 1, 536870911)};`),
      ...reserved(
        type.reservedRange.map(({ start, end }) => ({ start, end: end - 1 })),
        type.reservedName,
      ),
      ...printExtensions(type.extension, { field }),
    ]
    return block(`message ${type.name}`, lines)
  }

  /** A oneof is printed at the place of its first member, which keeps the order of fields. */
  function printOneof(member: FieldDescriptorProto, type: DescriptorProto): string[] {
    const members = type.field.filter((other) => inOneof(other) && other.oneofIndex === member.oneofIndex)
    if (members[0] !== member) return []
    return [block(`oneof ${type.oneofDecl[member.oneofIndex]!.name}`, members.map(field))]
  }

  function field(member: FieldDescriptorProto): string {
    const options = fieldOptions(member)
    const suffix = options.length === 0 ? '' : ` [${options.join(', ')}]`
    return `${label(member)}${typeName(member)} ${member.name} = ${member.number}${suffix};`
  }

  function label(member: FieldDescriptorProto): string {
    if (inOneof(member)) return ''
    if (member.label === Label.REPEATED) return 'repeated '
    if (member.label === Label.REQUIRED) return 'required '
    return proto2 || member.proto3Optional ? 'optional ' : ''
  }

  function typeName(member: FieldDescriptorProto): string {
    return member.typeName === '' ? Type[member.type].toLowerCase() : shortName(member.typeName)
  }

  function shortName(qualified: string): string {
    const own = `.${file.package}.`
    return qualified.startsWith(own) ? qualified.slice(own.length) : qualified.slice(1)
  }

  function enumeration(type: EnumDescriptorProto): string {
    const values = type.value.map((value) => `${value.name} = ${value.number};`)
    return block(`enum ${type.name}`, [...values, ...reserved(type.reservedRange, type.reservedName)])
  }

  return { message, field, enumeration, shortName }
}

function printFileOptions(file: FileDescriptorProto): string {
  if (file.options === undefined) return ''
  const lines: string[] = []
  for (const option of FileOptionsSchema.fields) {
    if (!isFieldSet(file.options, option)) continue
    if (option.fieldKind !== 'scalar') throw new Error(`${file.name}: option ${option.name} is not printed`)
    const value = file.options[option.localName as 'goPackage' | 'javaMultipleFiles']
    lines.push(`option ${option.name} = ${JSON.stringify(value)};`)
  }
  return lines.toSorted().join('\n')
}

/** Prints the extensions of one message as one block, in the order of the descriptor. */
function printExtensions(extensions: readonly FieldDescriptorProto[], print: Pick<Printer, 'field'>): string[] {
  const byExtendee = Map.groupBy(extensions, ({ extendee }) => extendee)
  return [...byExtendee].map(([extendee, fields]) => block(`extend ${extendee.slice(1)}`, fields.map(print.field)))
}

function fieldOptions(member: FieldDescriptorProto): string[] {
  if (member.defaultValue !== '') throw new Error(`${member.name}: default values are not printed`)
  if (member.options === undefined) return []
  const options: string[] = []
  if (member.options.deprecated) options.push('deprecated = true')
  if (hasExtension(member.options, predefined)) {
    const rules = getExtension(member.options, predefined).cel.map((rule) =>
      block('', [
        ...(rule.id === '' ? [] : [`id: ${quoted(rule.id)}`]),
        ...(rule.message === '' ? [] : [`message: ${quoted(rule.message)}`]),
        ...(rule.expression === '' ? [] : [`expression: ${quoted(rule.expression)}`]),
      ]),
    )
    options.push(`(predefined) = {\n  cel: [${indent(rules.join(', ')).trimStart()}]\n}`)
  }
  return options
}

/** A string literal; one piece a line where the text has several lines. */
function quoted(text: string): string {
  const pieces = text.split(/(?<=\n)/).map((piece) => JSON.stringify(piece))
  return pieces.length === 1 ? pieces[0]! : `\n${indent(pieces.join('\n'))}`
}

/** @param ranges - both ends inclusive */
function reserved(ranges: readonly { start: number; end: number }[], names: readonly string[]): string[] {
  const numbers = ranges.map(({ start, end }) => (start === end ? `${start}` : `${start} to ${end}`))
  return [
    ...(numbers.length === 0 ? [] : [`reserved ${numbers.join(', ')};`]),
    ...(names.length === 0 ? [] : [`reserved ${names.map((name) => JSON.stringify(name)).join(', ')};`]),
  ]
}

function rangeEnd(end: number, max: number): string {
  return end === max ? 'max' : `${end}`
}

function inOneof(member: FieldDescriptorProto): boolean {
  return Object.hasOwn(member, 'oneofIndex') && !member.proto3Optional
}

function block(head: string, lines: readonly string[]): string {
  const open = head === '' ? '{' : `${head} {`
  return lines.length === 0 ? `${open}}` : `${open}\n${indent(lines.join('\n'))}\n}`
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ')
}
