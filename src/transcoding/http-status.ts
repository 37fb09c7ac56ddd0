/**
 * The HTTP status of each google.rpc.Code, by number, as grpc-gateway maps them (its HTTPStatusFromCode, after the comments
 * of google/rpc/code.proto).
 */
const statusByCode: ReadonlyMap<number, number> = new Map([
  [0, 200], // OK
  [1, 499], // CANCELLED
  [2, 500], // UNKNOWN
  [3, 400], // INVALID_ARGUMENT
  [4, 504], // DEADLINE_EXCEEDED
  [5, 404], // NOT_FOUND
  [6, 409], // ALREADY_EXISTS
  [7, 403], // PERMISSION_DENIED
  [8, 429], // RESOURCE_EXHAUSTED
  [9, 400], // FAILED_PRECONDITION, deliberately not 412
  [10, 409], // ABORTED
  [11, 400], // OUT_OF_RANGE
  [12, 501], // UNIMPLEMENTED
  [13, 500], // INTERNAL
  [14, 503], // UNAVAILABLE
  [15, 500], // DATA_LOSS
  [16, 401], // UNAUTHENTICATED
])

/** The HTTP status for a google.rpc.Code; 500 for an unknown number. */
export function httpStatusOf(grpcCode: number): number {
  return statusByCode.get(grpcCode) ?? 500
}
