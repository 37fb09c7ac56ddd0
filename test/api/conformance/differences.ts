/**
 * The cases of connectrpc's conformance suite in which this service differs from what the suite expects, each with its reason. Any other
 * failing case is a defect; see tools/conformance.ts.
 */
export interface Difference {
  /** Names of cases. */
  readonly cases: RegExp
  /** The lines that the suite may report about them. Any other line is a defect. */
  readonly says: readonly RegExp[]
  readonly reason: string
}

/** Every error has google.rpc.ErrorInfo. The suite expects no details of errors that its service did not raise. */
const errorInfo: readonly RegExp[] = [
  /^actual error contain 1 details; expecting 0$/,
  /^connect error JSON: details\[0\]: could not check debug data because message type "google\.rpc\.ErrorInfo" could not be resolved/,
  /^;? ?$/,
]

function code(actual: string, expected: string): RegExp {
  return new RegExp(
    `^actual error \\{code: \\d+ \\(${actual}\\), .* does not match expected code \\d+ \\(${expected}\\)`,
  )
}

export const differences: readonly Difference[] = [
  {
    cases:
      /\/(?:first-|subsequent-)?request-exceeds-server-limit$|^Timeouts\/|^(?:Connect|gRPC|gRPC-Web) Unexpected Requests\//,
    says: errorInfo,
    reason: 'every error has its reason as a detail, google.rpc.ErrorInfo',
  },
  {
    cases: /^Connect Unexpected Requests\/.*\/unexpected-verb$/,
    says: [...errorInfo, code('unimplemented', 'unknown')],
    reason:
      'a wrong HTTP method is 405 with the code unimplemented and its reason, where the suite expects a status without a body',
  },
  {
    cases: /\/unexpected-(?:codec|content-type)$/,
    says: [...errorInfo, code('invalid_argument', 'unknown')],
    reason:
      'a Content-Type that is not served is invalid_argument with its reason, where the suite expects a status without a body',
  },
  {
    cases: /^Unexpected Requests\/.*Protocol:PROTOCOL_GRPC(?:_WEB)?\/.*\/unexpected-content-type$/,
    says: [/^connect error JSON: unexpected end of JSON input$/],
    reason:
      'a Content-Type of no protocol is answered in the form of Connect; the client of gRPC that sent it does not read the body, and the suite then looks at half of it',
  },
]
