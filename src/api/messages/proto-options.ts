import { type DescField, type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http } from '../../../gen/google/api/annotations_pb.js'
import { comma_separated } from '../../../gen/payments/v1/options_pb.js'
import type { HttpRule } from '../../transcoding/http-rule.ts'

/** The google.api.http option of a method; undefined if it has none. */
export function httpRuleOf(method: DescMethod): HttpRule | undefined {
  return hasOption(method, http) ? getOption(method, http) : undefined
}

/** Whether one query parameter of a repeated field may hold several values, separated by commas. */
export function isCommaSeparated(field: DescField): boolean {
  return getOption(field, comma_separated)
}
