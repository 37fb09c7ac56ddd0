import { type DescField, type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { http } from '../../../gen/google/api/annotations_pb.js'
import { comma_separated, deprecation } from '../../../gen/payments/v1/options_pb.js'
import type { HttpBinding, HttpRule } from '../../transcoding/http-rule.ts'

/** The google.api.http option of a method; undefined if it has none. */
export function httpRuleOf(method: DescMethod): HttpRule | undefined {
  return hasOption(method, http) ? getOption(method, http) : undefined
}

/** The path of a binding with its variables by their JSON names, as in the documentation. */
export function writtenPath({ path }: HttpBinding, { input }: DescMethod): string {
  const jsonNames = new Map(input.fields.map(({ name, jsonName }) => [name, jsonName]))
  return path.replaceAll(/(?<=\{)\w+/g, (name) => jsonNames.get(name) ?? name)
}

/** The texts that a field, or each element of a list, may be; none if any is allowed. */
export function allowedTexts(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules)
  const ofText = type.case === 'repeated' ? type.value.items?.type : type
  return ofText?.case === 'string' ? ofText.value.in : []
}

/** Whether one query parameter of a repeated field may hold several values, separated by commas. */
export function isCommaSeparated(field: DescField): boolean {
  return getOption(field, comma_separated)
}

/**
 * The headers by which every answer of a method says that it is on its way out; undefined for a method that stays.
 *
 * @throws TypeError when its option has a date that is none, or a sunset that comes less than a year later
 */
export function deprecationHeaders(method: DescMethod): Readonly<Record<string, string>> | undefined {
  if (!hasOption(method, deprecation)) return undefined
  const { since, sunset, link } = getOption(method, deprecation)
  const [sinceMs, sunsetMs] = [since, sunset].map((date) => (DATE.test(date) ? Date.parse(date) : Number.NaN))
  if (sinceMs === undefined || sunsetMs === undefined || !(sunsetMs - sinceMs >= MIN_NOTICE_MS)) {
    throw new TypeError(`${method.toString()} is deprecated since "${since}" until "${sunset}": use dates a year apart`)
  }
  return {
    // RFC 9745: a date of structured fields, in seconds.
    deprecation: `@${sinceMs / 1_000}`,
    sunset: new Date(sunsetMs).toUTCString(),
    ...(link !== '' && { link: `<${link}>; rel="deprecation"; type="text/html"` }),
  }
}

const DATE = /^\d{4}-\d{2}-\d{2}$/

/** How long a method goes on at least. */
const MIN_NOTICE_MS = 365 * 24 * 3_600_000
