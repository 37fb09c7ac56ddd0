import { type ReasonEntry, unavailable, unavailableOrWarning } from './reason-entry.ts'

/** Of candidates that did not become a route. */
export const missingRouteReasons = {
  INSUFFICIENT_BALANCE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} and needs {need}',
    remedy: 'add {missing} {token} on {chain}',
  },
  FEE_ABOVE_MAXIMUM: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'its feeRate of {feeRate} is above the maxFeeRate of {maxFeeRate}',
    remedy: 'raise maxFeeRate to {feeRate} or more',
  },
  PRICE_IMPACT_ABOVE_MAXIMUM: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'its price impact is {priceImpact} of what the payee receives, more than the maxPriceImpact of {maxPriceImpact}',
    remedy: 'raise maxPriceImpact to {priceImpact} or more',
  },
  NO_CONVERSION_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the wallet has {have} {token} on {chain}, but a request in {invoiceCurrency} can only be paid with {paymentToken} on {destinationChain}',
    remedy: 'get {paymentToken} on {destinationChain} elsewhere, as much as is said of it there, and pay with it',
  },
  NO_CONVERSION_PATH: {
    kind: 'NOTICE',
    in: unavailableOrWarning,
    message: 'no conversion of {invoiceCurrency} into {token} is configured on {chain}',
    remedy: 'configure a path from {invoiceCurrency} to {token} under conversion in the chains file',
  },
  NO_RATE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the conversion contract of {chain} tells no rate of {invoiceCurrency} in {token}',
    remedy: 'let it know a price feed that answers more than 0 for each step from {invoiceCurrency} to {token}',
  },
  RATE_STALE: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the rate of {invoiceCurrency} in {token} on {chain} is {ageSeconds} seconds old, and the payment would be refused beyond {limitSeconds}',
    remedy: 'try again when its price feed has a new round',
  },
  CONVERSION_TOO_SMALL: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{amount} {invoiceCurrency} is less than the smallest unit of {token} on {chain}',
    remedy: 'pay {least} {invoiceCurrency} or more at once, by an amount',
  },
  NO_SWAP_CONTRACT: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no contract that swaps through {exchange} and pays, of version 0.4.0 or later, is configured on {chain}',
    remedy: 'configure ERC20_SWAP_TO_PAY of such a version and the fee proxy of {chain} in the chains file',
  },
  COIN_NOT_SWAPPABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} swaps tokens, and {coin} is the native coin of {chain}',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}',
  },
  NO_POOL: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} has no pool that leads from {token} to {paymentToken} on {chain}',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}',
  },
  INSUFFICIENT_LIQUIDITY: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the pools of {exchange} between {token} and {paymentToken} on {chain} hold less than the payment needs',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}, or pay a smaller part by an amount',
  },
  SWAP_NOT_SET_UP: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the contract of {chain} that swaps and pays is not ready for this: {detail}',
    remedy: 'let its owner call {calls}',
  },
  NO_FEE_RECEIVER: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the contract of {chain} that swaps through {exchange} and pays takes a fee for the feeAddress, and without one it would send it to nobody',
    remedy: 'ask with a feeAddress, and with feePercentage=0 where nothing else is to be charged',
  },
  NO_SWAP_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token}, but nothing here swaps it into {paymentToken} on {destinationChain}',
    remedy: 'swap it elsewhere and pay with {need} {paymentToken} on {destinationChain}',
  },
  NO_CROSSCHAIN_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} on {chain}, but nothing here carries it to {destinationChain}',
    remedy: 'carry it there elsewhere and pay with {need} {paymentToken} on {destinationChain}',
  },
  CROSSCHAIN_DELIVERS_TOKENS: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} is asked to deliver tokens, and {coin} is the native coin of {destinationChain}',
    remedy: 'pay with {need} {coin} on {destinationChain}',
  },
  CROSSCHAIN_BRIDGED_TOKEN: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{token} on {chain} is a bridged copy, and {provider} is asked for tokens of their issuers alone',
    remedy: 'pay with another token, or with {need} {paymentToken} on {destinationChain}',
  },
  CROSSCHAIN_AMOUNT_TOO_SMALL: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'it is too little to be carried from {chain} to {destinationChain} by {provider}: {detail}',
    remedy: 'pay with {need} {paymentToken} on {destinationChain}, or more at once',
  },
  CROSSCHAIN_BALANCE_TOO_LOW: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} and needs about {need} and what it costs to carry them',
    remedy: 'add more than {missing} {token} on {chain}; the quote then tells what carrying costs',
  },
  CROSSCHAIN_NOT_ASKED: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      '{provider} is asked for the {most} best-funded tokens of a wallet, and {token} on {chain} is none of them',
    remedy: 'ask with tokens={token} and chains={chain}',
  },
  CROSSCHAIN_NO_ROUTE: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      '{provider} has no way from {token} on {chain} to {paymentToken} on {destinationChain} for this amount: {detail}',
    remedy: 'pay with {need} {paymentToken} on {destinationChain}, or try again in {seconds} s',
  },
  CROSSCHAIN_REFUSED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} refuses the question: {detail}',
    remedy: 'check that {provider} serves {chain} and {destinationChain} and their configured tokens',
  },
  CROSSCHAIN_QUOTA_EXHAUSTED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} may not be asked for {seconds} seconds: its quota is used up',
    remedy: 'ask again then, or let the operator get a larger quota',
  },
  CROSSCHAIN_UNAUTHORIZED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} does not take the API key of this service',
    remedy: 'let the operator check LIFI_API_KEY',
  },
  CROSSCHAIN_TIMEOUT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} did not answer in time',
    remedy: 'try again in {seconds} s',
  },
  CROSSCHAIN_UNREACHABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} could not be asked: {detail}',
    remedy: 'try again in {seconds} s',
  },
  CROSSCHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} gave an answer that cannot be right: {detail}',
    remedy: 'take another route, or try again in {seconds} s',
  },
  NO_PAYMENT_CONTRACT: {
    kind: 'NOTICE',
    in: unavailableOrWarning,
    message: 'no payment contract for {token} is configured on {chain}',
    remedy: 'configure {kind} of {chain} in the chains file',
  },
  CURRENCY_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailableOrWarning,
    message: 'payments in {currency} cannot be made through this service',
    remedy: 'configure the token on {chain} in the chains file',
  },
  NO_PRICE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'there is no price of {token} on {chain}',
    remedy: 'configure a price feed or a peg for {token} in the chains file',
  },
  PRICE_STALE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the price feed of {token} on {chain} tells no fresh price',
    remedy: 'try again when it has a new round above 0',
  },
  CHAIN_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailableOrWarning,
    message: 'payments on {chain} cannot be made through this service',
    remedy: 'configure {chain} in the chains file',
  },
  WALLET_FAMILY_MISMATCH: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'a {walletFamily} wallet cannot pay on {chain}',
    remedy: 'ask with a wallet of {chain}',
  },
  CHAIN_UNREACHABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} did not answer: {detail}',
    remedy: 'try again in {seconds} s',
  },
  CHAIN_TIMEOUT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} did not answer within {timeoutMs} ms',
    remedy: 'try again in {seconds} s',
  },
  CHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} gave an answer that cannot be right: {detail}',
    remedy: 'try again in {seconds} s; if it stays, check what the chains file says of {chain}',
  },
  CONTRACT_UNREADABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the contract of {contract} on {chain} does not tell {what}',
    remedy: 'check what the chains file says of {contract} on {chain}',
  },
} as const satisfies Record<string, ReasonEntry>
