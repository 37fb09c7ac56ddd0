import { unavailable, unavailableOrWarning } from './reason-entry.ts'

/** Reasons why a candidate did not become a route. */
export const missingRouteReasons = {
  INSUFFICIENT_BALANCE: unavailable({
    message: 'the wallet has {have} {token} and needs {need}',
    remedy: 'add {missing} {token} on {chain}',
  }),
  FEE_ABOVE_MAXIMUM: unavailable({
    message: 'the feeRate of this route, {feeRate}, is above the maxFeeRate of {maxFeeRate}',
    remedy: 'raise maxFeeRate to {feeRate} or more',
  }),
  PRICE_IMPACT_ABOVE_MAXIMUM: unavailable({
    message: 'the price_impact of this route, {priceImpact}, is above the maxPriceImpact of {maxPriceImpact}',
    remedy: '{suggestion}',
  }),
  PRICE_IMPACT_UNCERTAIN: unavailable({
    message: 'no maxPriceImpact lets this route pass, whose price_impact is {priceImpact}: {why}',
    remedy: 'leave maxPriceImpact out',
  }),
  NO_CONVERSION_PROVIDER: unavailable({
    message:
      'the wallet has {have} {token} on {chain}, but a request in {invoiceCurrency} can only be paid with {paymentToken} on {destinationChain}',
    remedy: 'get {paymentToken} on {destinationChain} elsewhere and pay with it; its own entry says how much is needed',
  }),
  NO_CONVERSION_PATH: unavailableOrWarning({
    message: 'no conversion of {invoiceCurrency} into {token} is configured on {chain}',
    remedy: 'configure a path from {invoiceCurrency} to {token} under conversion in the chains file',
  }),
  NO_RATE: unavailable({
    message: 'the conversion contract of {chain} has no rate from {invoiceCurrency} to {token}',
    remedy: 'register a price feed with an answer above 0 there for each step from {invoiceCurrency} to {token}',
  }),
  RATE_STALE: unavailable({
    message:
      'the rate from {invoiceCurrency} to {token} on {chain} is {ageSeconds} seconds old, and payments are refused beyond {limitSeconds}',
    remedy: 'try again when its price feed has a new round',
  }),
  CONVERSION_TOO_SMALL: unavailable({
    message: '{amount} {invoiceCurrency} is less than the smallest unit of {token} on {chain}',
    remedy: 'pay {least} {invoiceCurrency} or more at once: ask with a larger amount',
  }),
  NO_SWAP_CONTRACT: unavailable({
    message: 'no contract of version 0.4.0 or later that swaps through {exchange} and pays is configured on {chain}',
    remedy: 'configure such an ERC20_SWAP_TO_PAY and the fee proxy of {chain} in the chains file',
  }),
  COIN_NOT_SWAPPABLE: unavailable({
    message: '{exchange} swaps tokens, and {coin} is the native coin of {chain}',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}',
  }),
  NO_POOL: unavailable({
    message: '{exchange} has no pool from {token} to {paymentToken} on {chain}',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}',
  }),
  INSUFFICIENT_LIQUIDITY: unavailable({
    message: 'the pools of {exchange} between {token} and {paymentToken} on {chain} hold less than the payment needs',
    remedy: 'swap {token} elsewhere and pay with {need} {paymentToken} on {chain}, or pay a smaller amount at once',
  }),
  SWAP_NOT_SET_UP: unavailable({
    message: 'the contract of {chain} that swaps and pays is not set up for this route: {detail}',
    remedy: 'ask its owner to call {calls}',
  }),
  NO_FEE_RECEIVER: unavailable({
    message: 'the contract of {chain} that pays charges a fee for feeAddress; without feeAddress the fee would be lost',
    remedy: 'send a feeAddress, and feePercentage=0 if you charge nothing yourself',
  }),
  NO_SWAP_PROVIDER: unavailable({
    message:
      'the wallet has {have} {token}, but no configured provider swaps it into {paymentToken} on {destinationChain}',
    remedy: 'swap it elsewhere and pay with {need} {paymentToken} on {destinationChain}',
  }),
  NO_CROSSCHAIN_PROVIDER: unavailable({
    message: 'the wallet has {have} {token} on {chain}, but no configured bridge carries it to {destinationChain}',
    remedy: 'bridge it elsewhere and pay with {need} {paymentToken} on {destinationChain}',
  }),
  CROSSCHAIN_DELIVERS_TOKENS: unavailable({
    message: '{provider} is used to deliver tokens only, and {coin} is the native coin of {destinationChain}',
    remedy: 'pay with {need} {coin} on {destinationChain}',
  }),
  CROSSCHAIN_BRIDGED_TOKEN: unavailable({
    message: '{token} on {chain} is a bridged copy, and {provider} is used for tokens from their issuers only',
    remedy: 'pay with another token, or with {need} {paymentToken} on {destinationChain}',
  }),
  CROSSCHAIN_AMOUNT_TOO_SMALL: unavailable({
    message: 'the amount is too small for {provider} to carry it from {chain} to {destinationChain}: {detail}',
    remedy: 'pay with {need} {paymentToken} on {destinationChain}, or pay more at once',
  }),
  CROSSCHAIN_BALANCE_TOO_LOW: unavailable({
    message: 'the wallet has {have} {token} and needs about {need} plus the costs of the bridge',
    remedy: 'add more than {missing} {token} on {chain}; the quote then shows the costs of the bridge',
  }),
  CROSSCHAIN_NOT_ASKED: unavailable({
    message:
      '{provider} is only asked for the {most} best-funded tokens of a wallet, and {token} on {chain} is not among them',
    remedy: 'ask with tokens={token} and chains={chain}',
  }),
  CROSSCHAIN_NO_ROUTE: unavailable({
    message:
      '{provider} has no route from {token} on {chain} to {paymentToken} on {destinationChain} for this amount: {detail}',
    remedy: 'pay with {need} {paymentToken} on {destinationChain}, or try again in {seconds} s',
  }),
  CROSSCHAIN_REFUSED: unavailable({
    message: '{provider} refused to quote: {detail}',
    remedy: 'check that {provider} serves {chain} and {destinationChain} and their configured tokens',
  }),
  CROSSCHAIN_QUOTA_EXHAUSTED: unavailable({
    message: '{provider} cannot be asked for {seconds} seconds: its quota is used up',
    remedy: 'try again then, or ask the operator for a larger quota',
  }),
  CROSSCHAIN_UNAUTHORIZED: unavailable({
    message: '{provider} does not accept the API key of this service',
    remedy: 'ask the operator to check LIFI_API_KEY',
  }),
  CROSSCHAIN_UNREACHABLE: unavailable({
    message: 'asking {provider} failed: {detail}',
    remedy: 'try again in {seconds} s',
  }),
  CROSSCHAIN_REJECTED: unavailable({
    message: '{provider} gave an answer that failed the check {check}: {detail}',
    remedy: 'take another route, or try again in {seconds} s',
  }),
  CROSSCHAIN_NOT_PINNED: unavailable({
    message: 'no contracts of {provider} are configured on {chain}, and no others are trusted',
    remedy: 'configure the entry lifi of {chain} in the chains file',
  }),
  CROSSCHAIN_COST_TOO_HIGH: unavailable({
    message: '{provider} charges too much: {detail}',
    remedy: 'take another route, or try again in {seconds} s',
  }),
  NO_PAYMENT_CONTRACT: unavailableOrWarning({
    message: 'no payment contract for {token} is configured on {chain}',
    remedy: 'configure {kind} of {chain} in the chains file',
  }),
  CURRENCY_NOT_SUPPORTED: unavailableOrWarning({
    message: 'payments in {currency} cannot be made through this service',
    remedy: 'configure the token on {chain} in the chains file',
  }),
  NO_PRICE: unavailable({
    message: 'there is no price of {token} on {chain}',
    remedy: 'configure a price feed or a peg for {token} in the chains file',
  }),
  PRICE_STALE: unavailable({
    message: 'the price feed of {token} on {chain} has no fresh price',
    remedy: 'try again when it has a new round with a price above 0',
  }),
  CHAIN_NOT_SUPPORTED: unavailableOrWarning({
    message: 'payments on {chain} cannot be made through this service',
    remedy: 'configure {chain} in the chains file',
  }),
  WALLET_FAMILY_MISMATCH: unavailable({
    message: 'a {walletFamily} wallet cannot pay on {chain}',
    remedy: 'ask with a wallet of {chain}',
  }),
  CHAIN_UNREACHABLE: unavailable({
    message: '{chain} did not answer: {detail}',
    remedy: 'try again in {seconds} s',
  }),
  SCREENING_UNAVAILABLE: unavailable({
    message: 'the screening oracle of {chain} gave no answer, so nobody is sent to pay there',
    remedy: 'try again; if it happens again, check screening of {chain} in the chains file',
  }),
  CHAIN_INCONSISTENT: unavailable({
    message: '{chain} gave an answer that cannot be right: {detail}',
    remedy: 'try again in {seconds} s; if it happens again, check {chain} in the chains file',
  }),
  CONTRACT_NOT_AS_CONFIGURED: unavailable({
    message: '{contract} on {chain} is not what the chains file says: {detail}; money sent there would be lost',
    remedy: 'ask the operator to correct {contract} of {chain} in the chains file',
  }),
  CONTRACT_UNREADABLE: unavailable({
    message: 'the contract of {contract} on {chain} does not return {what}',
    remedy: 'check {contract} on {chain} in the chains file',
  }),
}
