import { errorOrWarning, warning } from './reason-entry.ts'

/** Reasons of warnings on an answer. */
export const warningReasons = {
  // Warnings on the answer as a whole
  REQUEST_ALREADY_PAID: warning({
    message: 'final payments cover this request',
    remedy: 'do not pay it again',
  }),
  PAYMENT_PENDING: warning({
    message: 'payments that are not final yet cover this request',
    remedy: 'do not pay again; wait until they are final',
  }),
  REQUEST_CANCELLED: errorOrWarning('PRECONDITION', {
    message: 'the request was cancelled at {at}',
    remedy: 'do not pay it; ask whoever made it for another request',
  }),
  REQUEST_EXPIRED: errorOrWarning('PRECONDITION', {
    message: 'the request expired at {at}',
    remedy: 'do not pay it; ask whoever made it for another request',
  }),
  WALLET_IS_PAYEE: errorOrWarning('INVALID_INPUT', {
    message: 'the wallet {wallet} is the payee of this request, and payments to oneself never count',
    remedy: 'pay with another wallet',
  }),
  PAYER_NOT_ALLOWED: errorOrWarning('INVALID_INPUT', {
    message: 'the wallet {wallet} is not one of those that may pay this request',
    remedy: 'pay with one of them, or ask whoever made the request',
  }),
  PAYER_SCREENED: errorOrWarning('INVALID_INPUT', {
    message:
      'the wallet {wallet} is on the list of the screening oracle of {chain}, as read at {at}; the last change of the list that was read: {changedAt}',
    remedy: 'pay with another wallet',
  }),
  AMOUNT_ABOVE_OUTSTANDING: warning({
    message: 'the amount {amount} is above the outstanding balance of {outstanding} {currency}',
    remedy: 'pay the outstanding balance',
  }),
  FILTER_MATCHES_NOTHING: warning({
    message: '{detail}, so no route matches',
    remedy: '{suggestion}',
  }),
  // Warnings on a route
  INSUFFICIENT_GAS: warning({
    message: 'the wallet has {have} {currency} for gas and needs about {need}',
    remedy: 'add {missing} {currency} on {chain}',
  }),
  GAS_MAY_BE_SPONSORED: warning({
    message: 'the wallet is a contract, so its gas may be paid by others',
    remedy: 'ask the operator of the wallet who pays its gas',
  }),
  GAS_ESTIMATED: warning({
    message: 'no node of {chain} simulates several transactions, so the gas of {steps} was estimated one by one',
    remedy: 'send the gas limits as they are',
  }),
  GAS_NOT_MEASURED: warning({
    message: 'the gas of {steps} on {chain} could not be measured, so the field gas is absent there',
    remedy: 'let the wallet estimate it after the transactions before it are mined',
  }),
  GAS_UNPRICED: warning({
    message: 'there is no price of {currency}, so the fee leaves out the gas',
    remedy: 'add the gas yourself',
  }),
  SWAP_OFF_MARKET: warning({
    message:
      'the pools of {exchange} price {token} below the market: {fraction} of what the payee receives is lost by that alone, as price_impact says',
    remedy: 'take another route, or swap {token} elsewhere',
  }),
  PRICE_UNCHECKED: warning({
    message:
      'there is no fresh price of {token}, so price_impact counts from the pools of {exchange} alone, which anybody can move',
    remedy: 'compare sourceAmount with the market before you pay',
  }),
  CROSSCHAIN_SURPLUS: warning({
    message: 'the bridge carries about {amount} {token} more than the payment needs',
    remedy: 'expect it in the wallet on {chain}',
  }),
}
