import type { Message } from '@bufbuild/protobuf'
import { waybillError } from '../../errors/waybill-error.ts'
import type { PathVariable } from '../../transcoding/paths/router.ts'
import type { Route } from '../../transcoding/transcoder.ts'
import { type Exchange, readBody } from '../http/exchange.ts'
import { acceptsJson } from '../http/http-answer.ts'
import { readMediaType } from '../http/media-type.ts'
import { decodeContent, findCompression } from '../http/request-body.ts'

/**
 * Reads and decodes the request of a route.
 *
 * @throws TranscodingError; WaybillError UNSUPPORTED_CONTENT_TYPE, and those of readBody and decodeContent
 */
export async function readRestRequest(
  exchange: Exchange,
  { route, variables }: { readonly route: Route; readonly variables: readonly PathVariable[] },
  maxBytes: number,
): Promise<Message> {
  const { headers, rawQuery } = exchange
  if (!exchange.hasBody) return route.decodeRequest({ variables, rawQuery })
  const contentType = headers['content-type']
  if (route.binding.body !== '' && contentType !== undefined && !isJson(contentType)) {
    throw waybillError('UNSUPPORTED_CONTENT_TYPE', { value: contentType, expected: 'application/json' })
  }
  const encoding = headers['content-encoding']
  findCompression(encoding)
  const sent = await readBody(exchange, maxBytes)
  const body = await decodeContent(sent, encoding, maxBytes)
  return route.decodeRequest({ variables, rawQuery, body })
}

/** @throws WaybillError NOT_ACCEPTABLE when Accept does not allow JSON */
export function refuseOtherThanJson(accept: string | undefined): void {
  if (!acceptsJson(accept)) throw waybillError('NOT_ACCEPTABLE', { value: accept ?? '', expected: 'application/json' })
}

function isJson(contentType: string): boolean {
  const media = readMediaType(contentType)
  return media?.type === 'application/json' && media.isWellFormed && media.isUtf8
}
