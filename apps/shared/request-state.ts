import { type PaymentRequest, PaymentRequest_Status as Status } from '@waybill/client/checkout'

/** The name of a request's status, as the API has it. */
export type RequestState = Exclude<keyof typeof Status, 'STATUS_UNSPECIFIED'>

export function stateOf({ status }: Pick<PaymentRequest, 'status'>): RequestState {
  return Status[status] as RequestState
}

/** Whether the request still takes payments. */
export const isPayable = (state: RequestState) => state === 'OPEN' || state === 'PARTIALLY_PAID'
