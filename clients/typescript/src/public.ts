/** What users of the package may import. */
export type { Chain } from '../gen/payments/v1/chain_pb.js'
export type { PaymentCalldata } from '../gen/payments/v1/payment_calldata_pb.js'
export { type Payment, Payment_Status, Payment_Type } from '../gen/payments/v1/payment_pb.js'
export { type PaymentRequest, PaymentRequest_Status } from '../gen/payments/v1/payment_request_pb.js'
export {
  SearchPaymentsRequest_IncludeTotal,
  SearchPaymentsRequest_SortBy,
  SearchPaymentsRequest_SortOrder,
} from '../gen/payments/v1/payment_search_service_pb.js'
export {
  type PaymentSummary,
  PaymentSummary_GroupBy,
  PaymentSummary_Measure,
} from '../gen/payments/v1/payment_summary_pb.js'
export { type WatchPaymentsResponse, WatchPaymentsResponse_Type } from '../gen/payments/v1/payment_watch_pb.js'
export { type Route, Route_StepKind } from '../gen/payments/v1/route_pb.js'
export { type FieldViolation, WaybillCallError } from './call-error.ts'
export type { WaybillOptions } from './caller.ts'
export type { CallOptions } from './calls.ts'
export type { ExportCsvOptions } from './export-csv.ts'
export type { KeepOpenOptions } from './keep-open.ts'
export type { PayOutcome, PayProgress } from './wallet/outcome.ts'
export { type PayOptions, pay } from './wallet/pay.ts'
export type { Eip1193Provider, SendingProvider, WalletProvider } from './wallet/provider.ts'
export type { AddChainParameters } from './wallet/ready-wallet.ts'
export type { WatchFilter, WatchOptions } from './watch.ts'
export { createWaybill, type Waybill } from './waybill.ts'
