import { type ReasonEntry, unavailable } from './reason-entry.ts'

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
    message: 'its fee is {fee} of what the payee receives, more than the maxFee of {maxFee}',
    remedy: 'raise maxFee',
  },
  PRICE_IMPACT_ABOVE_MAXIMUM: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'its price impact is {priceImpact} of what the payee receives, more than the maxPriceImpact of {maxPriceImpact}',
    remedy: 'raise maxPriceImpact',
  },
  NO_CONVERSION_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the wallet has {have} {token} on {chain}, but a request in {invoiceCurrency} can only be paid with {paymentToken} on {destinationChain}',
    remedy: 'get {paymentToken} on {destinationChain} elsewhere and pay with it',
  },
  NO_CONVERSION_PATH: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no conversion of {invoiceCurrency} into {token} is configured on {chain}',
    remedy: 'configure a path from {invoiceCurrency} to {token} under conversion in the chains file',
  },
  NO_RATE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the conversion contract of {chain} tells no rate of {invoiceCurrency} in {token}',
    remedy: 'check that its price feeds exist and answer more than 0',
  },
  RATE_STALE: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the rate of {invoiceCurrency} in {token} on {chain} is {ageSeconds} seconds old, and the payment would be refused beyond {limitSeconds}',
    remedy: 'try again when its price feed has a new round',
  },
  NO_SWAP_CONTRACT: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no contract that swaps through {exchange} and pays is configured on {chain}',
    remedy: 'configure ERC20_SWAP_TO_PAY and the fee proxy of {chain} in the chains file',
  },
  COIN_NOT_SWAPPABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} swaps tokens, and {coin} is the native coin of {chain}',
    remedy: 'swap {token} into {paymentToken} elsewhere and pay with it',
  },
  NO_POOL: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} has no pool that leads from {token} to {paymentToken} on {chain}',
    remedy: 'swap {token} into {paymentToken} elsewhere and pay with it',
  },
  INSUFFICIENT_LIQUIDITY: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the pools of {exchange} between {token} and {paymentToken} on {chain} hold less than the payment needs',
    remedy: 'pay a part of it by an amount, or swap elsewhere',
  },
  SWAP_NOT_SET_UP: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the contract of {chain} that swaps and pays is not ready for this: {detail}',
    remedy: 'let its owner set the router and approve the tokens',
  },
  NO_SWAP_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token}, but nothing here swaps it into {paymentToken} on {destinationChain}',
    remedy: 'swap it elsewhere and pay with {paymentToken} on {destinationChain}',
  },
  NO_CROSSCHAIN_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} on {chain}, but nothing here carries it to {destinationChain}',
    remedy: 'carry it there elsewhere and pay with {paymentToken} on {destinationChain}',
  },
  CROSSCHAIN_DELIVERS_TOKENS: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} is asked to deliver tokens, and {coin} is the native coin of {destinationChain}',
    remedy: 'pay with {coin} on {destinationChain}',
  },
  CROSSCHAIN_BRIDGED_TOKEN: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{token} on {chain} is a bridged copy, and {provider} is asked for tokens of their issuers alone',
    remedy: 'pay with another token, or ask for one',
  },
  CROSSCHAIN_AMOUNT_TOO_SMALL: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'it is too little to be carried from {chain} to {destinationChain} by {provider}: {detail}',
    remedy: 'pay with {paymentToken} on {destinationChain}, or more at once',
  },
  CROSSCHAIN_BALANCE_TOO_LOW: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} and needs about {need} and what it costs to carry them',
    remedy: 'add more than {missing} {token} on {chain}',
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
    remedy: 'pay with {paymentToken} on {destinationChain}, or try again later',
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
    remedy: 'try again in a moment',
  },
  CROSSCHAIN_UNREACHABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} could not be asked: {detail}',
    remedy: 'try again in a moment',
  },
  CROSSCHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} gave an answer that cannot be right: {detail}',
    remedy: 'take another route, or try again later',
  },
  NO_PAYMENT_CONTRACT: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no payment contract for {token} is configured on {chain}',
    remedy: 'configure the fee proxy of {chain}',
  },
  CURRENCY_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'payments in {currency} cannot be made through this service',
    remedy: 'configure the token on {chain} in the chains file',
  },
  NO_PRICE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'there is no price of {token} on {chain}',
    remedy: 'configure a price feed or a peg for {token}',
  },
  CHAIN_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailable,
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
    remedy: 'try again in a moment',
  },
  CHAIN_TIMEOUT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} did not answer within {timeoutMs} ms',
    remedy: 'try again in a moment',
  },
  CHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} gave an answer that cannot be right: {detail}',
    remedy: 'check the RPC URL of {chain}',
  },
} as const satisfies Record<string, ReasonEntry>
