/**
 * The gas of a payment's transactions. Measured on a node with Request's deployed contracts and plain tokens; `test/routing/quotes.test.ts`
 * compares it with what transactions really use.
 *
 * Most of it depends on storage: writing a balance that was 0 takes 17,100 more than changing one, and setting one to 0 refunds 4,800.
 */

const NEW_SLOT = 17_100n
const CLEARED_SLOT = 4_800n

/** Tokens and price feeds differ: a token with a fee on transfers used 19 % more than a plain one. */
function withMarginForTokens(measured: bigint): bigint {
  return (measured * 6n) / 5n
}

/** Only the length of calldata differs: native coins move alike everywhere. */
function withMarginForCalldata(measured: bigint): bigint {
  return (measured * 21n) / 20n
}

const APPROVE_FROM_ZERO = 46_400n
const APPROVE_OVER = 29_300n
const APPROVE_RESET = 24_300n

/** The gas of `approve` to a new value. */
export function approveGas({ fromZero }: { readonly fromZero: boolean }): bigint {
  return withMarginForTokens(fromZero ? APPROVE_FROM_ZERO : APPROVE_OVER)
}

/** The gas of `approve` to 0. */
export function approveResetGas(): bigint {
  return withMarginForTokens(APPROVE_RESET)
}

/** What is known about the accounts before a payment. */
export interface PaymentGasFacts {
  /** The payee's balance of the token is 0. */
  readonly payeeIsNew: boolean
  /** Present where a fee is paid; `NEW` where its receiver's balance of the token is 0. */
  readonly feeReceiver?: 'NEW' | 'KNOWN' | undefined
}

const ERC20_PAYMENT = 50_400n
const ERC20_FEE = 10_800n

/** The gas of `transferFromWithReferenceAndFee` of the ERC20 fee proxy. */
export function erc20PaymentGas(
  facts: PaymentGasFacts & {
    /** The allowance is used up exactly. */
    readonly clearsAllowance: boolean
    /** The payer's balance is used up exactly. */
    readonly clearsBalance: boolean
  },
): bigint {
  let gas = ERC20_PAYMENT
  if (facts.payeeIsNew) gas += NEW_SLOT
  if (facts.feeReceiver !== undefined) gas += ERC20_FEE
  if (facts.feeReceiver === 'NEW') gas += NEW_SLOT
  if (facts.clearsAllowance) gas -= CLEARED_SLOT
  if (facts.clearsBalance) gas -= CLEARED_SLOT
  return withMarginForTokens(gas)
}

const NATIVE_PAYMENT = 40_100n
const NATIVE_FEE = 9_600n
const NEW_ACCOUNT = 25_000n

/** The gas of `transferExactEthWithReferenceAndFee` of the native fee proxy. */
export function nativePaymentGas(facts: PaymentGasFacts): bigint {
  let gas = NATIVE_PAYMENT
  if (facts.payeeIsNew) gas += NEW_ACCOUNT
  if (facts.feeReceiver !== undefined) gas += NATIVE_FEE
  if (facts.feeReceiver === 'NEW') gas += NEW_ACCOUNT
  return withMarginForCalldata(gas)
}

/** What is known before a conversion, with the number of price feeds on its path. */
export interface ConversionGasFacts extends PaymentGasFacts {
  readonly feeds: number
}

const ERC20_CONVERSION = 47_600n
const NATIVE_CONVERSION = 55_000n
const FURTHER_FEED = 18_600n

/** The gas of `transferFromWithReferenceAndFee` of the ERC20 conversion proxy. */
export function erc20ConversionGas(
  facts: ConversionGasFacts & { readonly clearsAllowance: boolean; readonly clearsBalance: boolean },
): bigint {
  return erc20PaymentGas(facts) + withMarginForTokens(ERC20_CONVERSION + FURTHER_FEED * BigInt(facts.feeds - 1))
}

/** The gas of `transferWithReferenceAndFee` of the native conversion proxy. */
export function nativeConversionGas(facts: ConversionGasFacts): bigint {
  return nativePaymentGas(facts) + withMarginForTokens(NATIVE_CONVERSION + FURTHER_FEED * BigInt(facts.feeds - 1))
}

/** What is known before a payment by ERC20SwapToPay. */
export interface SwapGasFacts extends PaymentGasFacts {
  /** Pools on its path. */
  readonly hops: number
}

const SWAP_TO_PAY = 167_000n
const FURTHER_HOP = 46_400n

/**
 * Such a payment clears so much storage that it gets the largest refund, a fifth of its gas. So whatever is added counts four fifths.
 */
const SWAP_NEW_SLOT = 13_700n
const SWAP_FEE = 6_800n

/**
 * The gas of `swapTransferWithReference` of ERC20SwapToPay, once its router and the proxy may spend its tokens. The first swap of a pool takes
 * 40,000 more.
 */
export function swapToPayGas(facts: SwapGasFacts): bigint {
  let gas = SWAP_TO_PAY + FURTHER_HOP * BigInt(facts.hops - 1)
  if (facts.payeeIsNew) gas += SWAP_NEW_SLOT
  if (facts.feeReceiver !== undefined) gas += SWAP_FEE
  if (facts.feeReceiver === 'NEW') gas += SWAP_NEW_SLOT
  return (gas * 11n) / 10n
}

const ROUTER_V3 = 52_000n

/**
 * The gas of `exactOutputSingle` of SwapRouter02.
 *
 * @param poolGas - by QuoterV2
 * @param receiverIsNew - the wallet's balance of the bought token is 0
 */
export function swapV3Gas({ poolGas, receiverIsNew }: { poolGas: bigint; receiverIsNew: boolean }): bigint {
  return ((ROUTER_V3 + poolGas + (receiverIsNew ? NEW_SLOT : 0n)) * 11n) / 10n
}

/**
 * The gas limit for a transaction that uses so much after refunds: refunds, at most a fifth, are paid only at its end.
 *
 * @see https://eips.ethereum.org/EIPS/eip-3529
 */
export function gasToAllow(used: bigint): bigint {
  return (used * 5n + 3n) / 4n
}
