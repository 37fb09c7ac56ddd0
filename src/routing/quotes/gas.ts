/**
 * How much gas the transactions of a payment use. The numbers were measured on a node with Request's deployed contracts and
 * plain tokens; the test of quotes holds them against what is really used.
 *
 * What an account's storage holds before decides most of it: writing a balance that was 0 costs 17,100 more than changing one, and
 * setting one to 0 gives 4,800 back.
 */

const NEW_SLOT = 17_100n
const CLEARED_SLOT = 4_800n

/** Tokens and price feeds differ: a token that takes a fee on transfer used 19 % more than a plain one. */
function withMarginForTokens(measured: bigint): bigint {
  return (measured * 6n) / 5n
}

/** For calldata of other lengths; the native coin moves alike everywhere. */
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

/** What is known of the accounts before a payment. */
export interface PaymentGasFacts {
  /** The payee holds nothing of what is paid. */
  readonly payeeIsNew: boolean
  /** A fee is paid; `NEW` where its receiver holds nothing of what is paid. */
  readonly feeReceiver?: 'NEW' | 'KNOWN'
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

/** What is known before a conversion: the price feeds on its path too. */
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

/** What is known before a swap that pays. */
export interface SwapGasFacts extends PaymentGasFacts {
  /** Pools that it goes through. */
  readonly hops: number
}

const SWAP_TO_PAY = 167_000n
const FURTHER_HOP = 46_400n

/**
 * The storage that such a payment clears on its way gives back the most that a transaction can get, a fifth of its gas; so whatever adds
 * to it adds four fifths.
 */
const SWAP_NEW_SLOT = 13_700n
const SWAP_FEE = 6_800n

/**
 * The gas of `swapTransferWithReference` of ERC20SwapToPay, once it allows its router and the proxy to spend. The first swap that a pool
 * ever sees takes 40,000 more.
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
 * @param poolGas - as QuoterV2 tells it
 * @param receiverIsNew - the wallet holds nothing yet of what it buys
 */
export function swapV3Gas({ poolGas, receiverIsNew }: { poolGas: bigint; receiverIsNew: boolean }): bigint {
  return ((ROUTER_V3 + poolGas + (receiverIsNew ? NEW_SLOT : 0n)) * 11n) / 10n
}

/**
 * What has to be allowed so that so much is used in the end: storage that is cleared gives gas back, at most a fifth of all, only once
 * the transaction is through.
 *
 * @see https://eips.ethereum.org/EIPS/eip-3529
 */
export function gasToAllow(used: bigint): bigint {
  return (used * 5n + 3n) / 4n
}
