import type { DescMethod } from '@bufbuild/protobuf'
import { PaymentSchema } from '../../../gen/payments/v1/payment_pb.js'
import { derivedPaymentFields } from '../../domain/payment-line.ts'
import type { ServedMethod } from '../calls/served-method.ts'
import { endsOfStreams } from './error-responses.ts'
import { answerSchema, describeSymbol, inlineAnswerSchema, type MessageSchemas } from './message-schemas.ts'
import { type JsonSchema, type MediaType, refTo } from './openapi-document.ts'

/** The version of OpenAPI. From 3.2 on it can say of what a stream consists. */
export type OpenApiVersion = '3.1' | '3.2'

/** The body of a good answer, by content type, and what is to be said of it. */
export interface AnswerContent {
  readonly description: string
  readonly content: Readonly<Record<string, MediaType>>
}

/** Describes the good answer of a method over plain HTTP. */
export function answerContent(
  { desc: method, eventIdOf }: ServedMethod,
  schemas: MessageSchemas,
  version: OpenApiVersion,
): AnswerContent {
  const description = describeSymbol(schemas, method.output.typeName)
  if (method.methodKind !== 'server_streaming') {
    return { description, content: { 'application/json': { schema: answerSchema(schemas, method.output) } } }
  }
  const { lines, event, text } = isExport(method)
    ? exportForms(schemas)
    : streamForms(answerSchema(schemas, method.output), eventIdOf !== undefined)
  const ofLines = sequence('application/x-ndjson', lines, version)
  return {
    description: `${description}\n\n${text}`,
    content: {
      // Generators that support one form alone take the first. Of JSON lines they wait for the end, which a watch does not have.
      ...(event !== undefined && { 'text/event-stream': sequence('text/event-stream', event, version) }),
      'application/x-ndjson': ofLines,
      'application/jsonl': ofLines,
      ...(event === undefined && csvForm),
    },
  }
}

/** The answers that are no messages but a file of payments. */
export function isExport({ parent, name }: DescMethod): boolean {
  return `${parent.typeName}.${name}` === 'payments.v1.PaymentSearchService.ExportPayments'
}

interface Forms {
  /** Of each line of JSON lines. */
  readonly lines: JsonSchema
  /** Of each server-sent event; undefined where there are none. */
  readonly event?: JsonSchema
  readonly text: string
}

function streamForms(message: JsonSchema, hasIds: boolean): Forms {
  const lines: JsonSchema = {
    type: 'object',
    properties: { result: message, error: refTo('schemas', 'Error') },
    minProperties: 1,
    maxProperties: 1,
  }
  const event: JsonSchema = {
    type: 'object',
    properties: {
      ...(hasIds && {
        id: { type: 'string', description: 'Position of the message, where it has one: send it as `last-event-id`.' },
      }),
      event: { type: 'string', enum: ['error', 'end'], description: 'Absent for a message.' },
      data: { type: 'string', contentMediaType: 'application/json', contentSchema: message },
    },
    required: ['data'],
  }
  const ends = endsOfStreams.map((reason) => `\`${reason}\``).join(', ')
  const text = [
    'A stream. `Accept` chooses its form; JSON lines are the default.',
    'JSON lines: each line is `{"result":{…}}` with a message, the last one `{"error":{…}}` if the stream fails. Skip blank lines, which are heartbeats.',
    `Server-sent events: \`data:\` is a message${hasIds ? ', after `id:` where it has a position' : ''}. An event named \`error\` holds an error, one named \`end\` says that the stream is complete. Comments are heartbeats.`,
    `A failure before the first message is an ordinary error with its status. A stream may end with ${ends}.`,
  ].join('\n\n')
  return { lines, event, text }
}

function exportForms(schemas: MessageSchemas): Forms {
  const derived = [...derivedPaymentFields].map((name) => `\`${name}\``).join(', ')
  return {
    lines: { anyOf: [paymentLine(schemas), errorLine] },
    text: [
      'A file, by `format`, else by `Accept`; JSON lines are the default. A whole file ends with an empty line; without it the file was cut.',
      `JSON lines: each line is a payment without its derived fields (${derived}). The last line is \`{"error":{…}}\` if the export fails.`,
      'CSV: RFC 4180 in UTF-8, with a header line. If the export fails, the first cell of its last line is `error`.',
    ].join('\n\n'),
  }
}

const errorLine: JsonSchema = {
  type: 'object',
  properties: { error: refTo('schemas', 'Error') },
  required: ['error'],
}

/** A payment as `domain/payment-line.ts` writes it: as in answers, but for the fields that it leaves out. */
function paymentLine(schemas: MessageSchemas): JsonSchema {
  const { description: _, ...payment } = inlineAnswerSchema(schemas, PaymentSchema)
  const properties = Object.entries(payment.properties ?? {}).filter(([name]) => !derivedPaymentFields.has(name))
  const required = payment.required?.filter((name) => !derivedPaymentFields.has(name)) ?? []
  return { ...payment, properties: Object.fromEntries(properties), required }
}

const csvForm = { 'text/csv': { schema: { type: 'string' } } } as const satisfies Record<string, MediaType>

/**
 * A body that is a sequence of items. OpenAPI 3.1 has no word for it: there the body is a text, and `contentSchema` the schema of each
 * item.
 */
function sequence(contentMediaType: string, item: JsonSchema, version: OpenApiVersion): MediaType {
  if (version === '3.2') return { itemSchema: item }
  return { schema: { type: 'string', contentMediaType, contentSchema: item } }
}
