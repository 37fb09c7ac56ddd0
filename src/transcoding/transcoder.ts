import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  equals,
  type Message,
  type Registry,
} from '@bufbuild/protobuf'
import { compileBodyMapping } from './body-mapping.ts'
import { decodeReporting, quote, reportThrown, TranscodingError } from './errors/transcoding-error.ts'
import { bindingsOf, type HttpBinding, type HttpRule } from './http-rule.ts'
import { findTextReader, readText, type TextReader } from './messages/field-text.ts'
import {
  compileFieldSerializer,
  compileJsonSerializer,
  compileStableJsonSerializer,
  type JsonSerializer,
  type StableJson,
} from './messages/json-serializer.ts'
import { fieldsOf, type MessageField, readField, writeField } from './messages/message-fields.ts'
import { createRouter, type PathVariable } from './paths/router.ts'
import { type PathTemplate, parseTemplate } from './paths/template-parser.ts'
import { compileQueryMapping, openOwner, refuseOtherMember } from './query-mapping.ts'

export interface TranscoderOptions {
  /**
   * Reads the google.api.http option of a method; undefined if it has none. The caller supplies this function, since the option is an
   * extension that only generated code knows.
   */
  readonly httpRule: (method: DescMethod) => HttpRule | undefined
  /**
   * Whether one query parameter of this repeated field may hold several values, separated by commas; by default, no field. An element
   * between two commas must not be empty.
   */
  readonly isCommaSeparated?: ((field: DescField) => boolean) | undefined
  /** Whether a field of an answer may change although the resource does not; none by default. */
  readonly isVolatile?: ((field: DescField) => boolean) | undefined
  /** Finds the types in google.protobuf.Any and extensions. */
  readonly registry?: Registry | undefined
}

export interface EncodedRequest {
  /** The variables that the router captured. */
  readonly variables: readonly PathVariable[]
  /** The query as it was sent, without the question mark; empty for none. */
  readonly rawQuery: string
  /** The JSON body; absent or of no bytes for none. */
  readonly body?: Uint8Array | undefined
}

/** One binding of one method: the form of its requests and answers over HTTP. */
export interface Route {
  readonly method: DescMethod
  readonly binding: HttpBinding
  /** The path of the binding, parsed. */
  readonly template: PathTemplate
  /**
   * Decodes a request.
   *
   * @throws TranscodingError for the caller's first mistake, with the others
   */
  readonly decodeRequest: (request: EncodedRequest) => Message
  /**
   * Encodes an answer, or the field of it that `response_body` names, as JSON text. Fields without presence are always
   * written, zeros and empty lists included. Takes a message, or an object from which `create` would make one.
   */
  readonly encodeResponse: JsonSerializer
  /**
   * As `encodeResponse`, with the stable part of the text, for an entity tag. Undefined if no field of the answer is volatile, with
   * `response_body`, and for an answer with a field of a rare kind ({@link compileStableJsonSerializer}).
   */
  readonly encodeStable: ((message: object) => StableJson) | undefined
}

export type Transcoder = ReturnType<typeof compileRoutes>

/** A google.api.http option that does not fit its method. Thrown at start-up. */
export class InvalidHttpRuleError extends Error {
  override readonly name = 'InvalidHttpRuleError'

  constructor(method: DescMethod, problem: string, cause?: unknown) {
    super(`google.api.http of ${method.parent.typeName}.${method.name}: ${problem}`, { cause })
  }
}

/**
 * Compiles the google.api.http options of services into routes. Methods without the option have none.
 *
 * @throws InvalidHttpRuleError if a template breaks the grammar, or a rule names a field that does not exist or cannot be used
 * @throws DuplicateRouteError if two bindings match the same requests
 */
export function compileRoutes(services: Iterable<DescService>, options: TranscoderOptions) {
  const entries = [...services]
    .flatMap((service) => service.methods)
    .flatMap((method) => compileMethod(method, options))
  return {
    /** Every binding, in the order of the services, methods and bindings. */
    routes: entries.map((entry) => entry.route),
    ...createRouter(entries),
  }
}

function compileMethod(method: DescMethod, options: TranscoderOptions) {
  const rule = options.httpRule(method)
  if (rule === undefined) return []
  try {
    return bindingsOf(rule).map((binding) => {
      const template = parseTemplate(binding.path)
      const route = compileRoute(method, binding, template, options)
      return { httpMethod: binding.httpMethod, template, route }
    })
  } catch (cause) {
    throw new InvalidHttpRuleError(method, cause instanceof Error ? cause.message : String(cause), cause)
  }
}

function compileRoute(
  method: DescMethod,
  binding: HttpBinding,
  template: PathTemplate,
  options: TranscoderOptions,
): Route {
  const { registry, isCommaSeparated = () => false, isVolatile = () => false } = options
  const mapBody = compileBodyMapping(method.input, binding.body, registry)
  const targets = new Map(
    template.variables.map(({ fieldPath }) => [fieldPath, compileVariable(method.input, fieldPath)] as const),
  )
  const mapQuery = compileQueryMapping(method.input, {
    boundInPath: [...targets.keys()],
    boundInBody: binding.body,
    isCommaSeparated,
  })
  return {
    method,
    binding,
    template,
    decodeRequest({ variables, rawQuery, body }) {
      const message = create(method.input)
      return decodeReporting(message, (report) => {
        // The body comes first, so that values of path and query are compared with those of the body.
        mapBody(message, body, report)
        for (const variable of variables) {
          const target = targets.get(variable.fieldPath)
          try {
            if (target !== undefined) assignVariable(message, target, variable)
          } catch (thrown) {
            reportThrown(thrown, report)
          }
        }
        mapQuery(message, rawQuery, report)
      })
    },
    encodeResponse: compileResponse(method.output, binding.responseBody, registry),
    encodeStable:
      binding.responseBody === '' && holdsField(method.output, isVolatile)
        ? compileStableJsonSerializer(method.output, isVolatile)
        : undefined,
  }
}

interface VariableTarget {
  readonly parents: readonly MessageField[]
  readonly field: DescField
  readonly reader: TextReader
}

function compileVariable(input: DescMessage, fieldPath: string): VariableTarget {
  const names = fieldPath.split('.')
  const last = names.pop() ?? ''
  const parents: MessageField[] = []
  let message = input
  for (const name of names) {
    const parent = message.fields.find((field) => field.name === name)
    if (parent?.fieldKind !== 'message' || findTextReader(parent) !== undefined) {
      throw new Error(`the path variable ${fieldPath} needs a message in ${message.typeName}.${name}`)
    }
    parents.push(parent)
    message = parent.message
  }
  const field = message.fields.find((each) => each.name === last)
  if (field === undefined) throw new Error(`the path variable ${fieldPath} is no field of ${message.typeName}`)
  const reader = field.fieldKind === 'list' ? undefined : findTextReader(field)
  if (reader === undefined) throw new Error(`the path variable ${fieldPath} must be a singular scalar or enum`)
  return { parents, field, reader }
}

function assignVariable(message: Message, { parents, field, reader }: VariableTarget, variable: PathVariable): void {
  const { fieldPath, value: text } = variable
  const owner = openOwner(message, parents, fieldPath)
  refuseOtherMember(owner, field, fieldPath)
  const value = readText(reader, fieldPath, text)
  const inBody = readField(owner, field)
  if (inBody !== undefined && !isSame(field, inBody, value)) {
    const problem = `the body gives ${quote(fieldPath)} another value than the path, ${quote(text)}`
    throw new TranscodingError('PATH_VARIABLE_OVERRIDDEN', problem, { field: fieldPath, value: text })
  }
  writeField(owner, field, value)
}

function isSame(field: DescField, a: unknown, b: unknown): boolean {
  if (field.fieldKind === 'message' && typeof a === 'object' && !(a instanceof Uint8Array)) {
    return equals(field.message, a as Message, b as Message)
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return a.length === b.length && a.every((byte, index) => byte === b[index])
  }
  return Object.is(a, b)
}

/** Whether a field of a message, at any depth, fulfils a condition. */
function holdsField(desc: DescMessage, isSuch: (field: DescField) => boolean, seen = new Set<DescMessage>()): boolean {
  if (seen.has(desc)) return false
  seen.add(desc)
  return desc.fields.some(
    (field) => isSuch(field) || (field.message !== undefined && holdsField(field.message, isSuch, seen)),
  )
}

function compileResponse(output: DescMessage, name: string, registry: Registry | undefined): JsonSerializer {
  if (name === '') return compileJsonSerializer(output, registry)
  const field = fieldsOf(output).get(name)
  if (field === undefined) throw new Error(`response_body names ${name}, which is no field of ${output.typeName}`)
  return compileFieldSerializer(output, field, registry)
}
