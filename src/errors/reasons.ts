/**
 * The one table of reasons: of errors, of warnings on an answer, and of candidates that did not become a route.
 * `api/calls/error-mapping.ts` alone knows which code and status a kind has on the wire.
 */

import { accessReasons } from './reasons/access.ts'
import { missingRouteReasons } from './reasons/missing-routes.ts'
import { outcomeReasons } from './reasons/outcomes.ts'
import { requestFormReasons } from './reasons/request-form.ts'
import { valueReasons } from './reasons/values.ts'
import { warningReasons } from './reasons/warnings.ts'

export type { ReasonKind } from './reasons/reason-entry.ts'

export const reasons = {
  ...requestFormReasons,
  ...valueReasons,
  ...accessReasons,
  ...outcomeReasons,
  ...warningReasons,
  ...missingRouteReasons,
} as const

/** The name of a reason. */
export type Reason = keyof typeof reasons
