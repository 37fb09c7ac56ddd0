/**
 * The one table of reasons: of errors, of warnings on an answer, and of candidates that did not become a route.
 * `api/calls/error-mapping.ts` alone knows which code and status a kind has on the wire.
 */

import { callReasons } from './reasons/calls.ts'
import { inputReasons } from './reasons/input.ts'
import { missingRouteReasons } from './reasons/missing-routes.ts'
import { warningReasons } from './reasons/warnings.ts'

export type { ReasonKind } from './reasons/reason-entry.ts'

export const reasons = {
  ...inputReasons,
  ...callReasons,
  ...warningReasons,
  ...missingRouteReasons,
} as const

/** The name of a reason. */
export type Reason = keyof typeof reasons
