/** What users of the package may import. */
export {
  type Chain,
  type Chain_Node,
  Chain_Node_State,
  Chain_Rate_Unit,
  Chain_State,
} from '../gen/payments/v1/chain_pb.js'
export { type FeeLine, FeeLine_Stage, FeeLine_Type } from '../gen/payments/v1/fee_line_pb.js'
export { type Key, Key_State, type KeyChange, KeyChange_Action } from '../gen/payments/v1/key_pb.js'
export { Pagination_TotalRelation } from '../gen/payments/v1/pagination_pb.js'
export type { BatchCalldata, PaymentCalldata } from '../gen/payments/v1/payment_calldata_pb.js'
export { type Payment, Payment_Mark, Payment_Status, Payment_Type } from '../gen/payments/v1/payment_pb.js'
export { type PaymentRequest, PaymentRequest_Status } from '../gen/payments/v1/payment_request_pb.js'
export type { PaymentRequestSummary } from '../gen/payments/v1/payment_request_summary_pb.js'
export {
  type PaymentSummary,
  PaymentSummary_GroupBy,
  PaymentSummary_Measure,
  SearchPaymentsRequest_IncludeTotal,
  SearchPaymentsRequest_SortBy,
  SearchPaymentsRequest_SortOrder,
  type WatchPaymentsResponse,
  WatchPaymentsResponse_Type,
} from '../gen/payments/v1/payment_search_service_pb.js'
export { ListPaymentRequestsRequest_IncludeTotal } from '../gen/payments/v1/requests_service_pb.js'
export {
  type Route,
  Route_Speed,
  Route_StepKind,
  Route_Tag,
  type UnavailableRoute,
  type Warning,
} from '../gen/payments/v1/route_pb.js'
export type { GetPaymentRoutesResponse } from '../gen/payments/v1/routes_service_pb.js'
export {
  type UnmatchedEvent,
  UnmatchedEvent_Acceptance,
  UnmatchedEvent_Reason,
} from '../gen/payments/v1/unmatched_event_pb.js'
export {
  type Webhook,
  Webhook_Kind,
  Webhook_PauseReason,
  Webhook_State,
  type WebhookDelivery,
  WebhookDelivery_State,
} from '../gen/payments/v1/webhook_pb.js'
export type { Reason } from '../gen/reasons.js'
export { type FieldViolation, WaybillCallError } from './call-error.ts'
export type { CallOptions, WaybillOptions } from './calls.ts'
export type { ExportCsvOptions } from './export-csv.ts'
export type { KeepOpenOptions } from './keep-open.ts'
export { verifyWebhook, type WebhookEvent, WebhookVerificationError } from './verify-webhook.ts'
export { findAsked } from './wallet/asked-mark.ts'
export { type ConnectOptions, type ConnectOutcome, connectWallet } from './wallet/connect.ts'
export type { AskedBefore, PayOutcome, PayProgress } from './wallet/outcome.ts'
export { type PayOptions, pay, type ResumeOptions, resumePay } from './wallet/pay.ts'
export type { Eip1193Provider, SendingProvider, WalletProvider } from './wallet/provider.ts'
export type { AddChainParameters } from './wallet/ready-wallet.ts'
export type { PaymentChange, WatchFilter, WatchOptions } from './watch.ts'
export { createWaybill, type Waybill } from './waybill.ts'
