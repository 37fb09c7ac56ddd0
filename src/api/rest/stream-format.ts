import { waybillError } from '../../errors/waybill-error.ts'
import { httpErrorBody } from '../calls/error-mapping.ts'
import type { StreamFormat } from '../calls/served-method.ts'
import { qualitiesOf } from '../http/http-answer.ts'

/**
 * One JSON object a line, as in grpc-gateway: its one name is `result` or, in the last line, `error`. The stream ends with the body.
 * Readers skip blank lines.
 */
function jsonLines(contentType: string): StreamFormat {
  return {
    contentType,
    message: (answer, encode) => `{"result":${encode(answer)}}\n`,
    error: (error) => `{"error":${httpErrorBody(error)}}\n`,
    end: '',
    heartbeat: '\n',
  }
}

/**
 * Server-sent events (HTML standard, 9.2). The name of the event tells messages from errors, so the data is the message itself. A browser
 * takes the end of the body for a broken connection and calls again, so a complete stream ends with an event of its own.
 */
const serverSentEvents: StreamFormat = {
  contentType: 'text/event-stream',
  message: (answer, encode, id) => `${idLine(id)}data: ${encode(answer)}\n\n`,
  error: (error) => `event: error\ndata: ${httpErrorBody(error)}\n\n`,
  end: 'event: end\ndata: {}\n\n',
  heartbeat: ': keep-alive\n\n',
}

/** Browsers ignore an id with a NUL, and a line break would begin another field. */
const unfitForId = new RegExp(String.raw`[\0\r\n]`)

function idLine(id: string | undefined): string {
  if (id === undefined) return ''
  if (unfitForId.test(id)) throw new TypeError(`${JSON.stringify(id)} cannot be the id of an event`)
  return `id: ${id}\n`
}

/** Callers who accept anything get the first. */
const formats: readonly StreamFormat[] = [
  jsonLines('application/x-ndjson'),
  jsonLines('application/jsonl'),
  serverSentEvents,
]

/**
 * Chooses by Accept (RFC 9110, 12.5.1): by the highest quality, between equals by the more specific range.
 *
 * @param from - callers who accept anything get the first
 * @throws WaybillError NOT_ACCEPTABLE
 */
export function chooseStreamFormat(accept: string | undefined, from = formats): StreamFormat {
  const qualities = qualitiesOf(accept === undefined || accept === '' ? '*/*' : accept)
  const wanted = from
    .map((format) => ({ format, ...rank(typeOf(format), qualities) }))
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || b.specificity - a.specificity)
  const [best] = wanted
  if (best !== undefined) return best.format
  throw waybillError('NOT_ACCEPTABLE', { value: accept ?? '', expected: from.map(typeOf).join(', ') })
}

/** Without parameters. */
function typeOf({ contentType }: StreamFormat): string {
  return contentType.split(';', 1)[0] ?? ''
}

function rank(type: string, qualities: ReadonlyMap<string, number>) {
  const ranges = ['*/*', `${type.slice(0, type.indexOf('/'))}/*`, type]
  const specificity = ranges.findLastIndex((range) => qualities.has(range))
  return { specificity, quality: qualities.get(ranges[specificity] ?? '') ?? 0 }
}
