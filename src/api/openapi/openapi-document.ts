/** The parts of an OpenAPI document that are written here (OpenAPI 3.1.1 and 3.2.0, JSON Schema 2020-12). */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

type SchemaType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array'

export interface JsonSchema {
  readonly $ref?: string
  readonly description?: string | undefined
  readonly type?: SchemaType | readonly [SchemaType, 'null']
  readonly format?: string
  readonly const?: string
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly anyOf?: readonly JsonSchema[]
  readonly contentEncoding?: string
  readonly contentMediaType?: string
  readonly contentSchema?: JsonSchema
  readonly examples?: readonly Json[] | undefined
}

export interface Reference {
  readonly $ref: string
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly style?: 'form'
  readonly explode?: boolean
  readonly schema: JsonSchema
}

export interface MediaType {
  readonly schema?: JsonSchema
  /** Of each message of a stream: OpenAPI 3.2 only. */
  readonly itemSchema?: JsonSchema
}

export interface Header {
  readonly description: string
  readonly required?: boolean
  readonly schema: JsonSchema
}

export interface ApiResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, Reference>>
  readonly content?: Readonly<Record<string, MediaType>>
  /** The reasons of the errors that have this status. */
  readonly 'x-reasons'?: readonly string[]
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly parameters: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, MediaType>> }
  readonly responses: Readonly<Record<string, ApiResponse | Reference>>
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** The path of the same method in gRPC, gRPC-Web and Connect. */
  readonly 'x-rpc'?: string
  /** Whether publishable keys may call it. */
  readonly 'x-publishable'?: true
  /** The operation of which this one is another path. */
  readonly 'x-alias-of'?: string
}

/** A reason of the table, for programs. */
export interface ReasonOfTable {
  readonly in: readonly string[]
  /** Of an error over plain HTTP. */
  readonly httpStatus?: number
  readonly code?: string
  readonly message: string
  readonly remedy: string
}

export interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly responses: Readonly<Record<string, ApiResponse>>
  readonly parameters: Readonly<Record<string, Parameter>>
  readonly headers: Readonly<Record<string, Header>>
  readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export type HttpMethod = 'get' | 'put' | 'post' | 'delete' | 'patch'

export function refTo(kind: keyof Components, name: string): Reference {
  return { $ref: `#/components/${kind}/${name}` }
}
