/**
 * The gas of a payment's transactions; that of a swap stands in its provider. Measured on a node with Request's deployed contracts and plain tokens; `test/routing/quotes.test.ts`
 * compares it with what transactions really use.
 *
 * Most of it depends on storage: writing a balance that was 0 takes 17,100 more than changing one, and setting one to 0 refunds 4,800.
 */

/** What writing a balance that was 0 adds. */
export const NEW_SLOT = 17_100n
const CLEARED_SLOT = 4_800n

/** Tokens and price feeds differ: a token with a fee on transfers used 19 % more than a plain one. */
function withMarginForTokens(measured: bigint): bigint {
  return (measured * 6n) / 5n
}

/** Pools differ in what they keep at each swap. */
export function withMarginForPools(measured: bigint): bigint {
  return (measured * 11n) / 10n
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

/**
 * What the receivers add to the gas of a payment.
 *
 * @param newReceiver - for each that holds nothing
 * @param fee - for paying a fee
 */
export function receiverGas({ payeeIsNew, feeReceiver }: PaymentGasFacts, newReceiver: bigint, fee: bigint): bigint {
  let gas = payeeIsNew ? newReceiver : 0n
  if (feeReceiver !== undefined) gas += fee
  if (feeReceiver === 'NEW') gas += newReceiver
  return gas
}

const ERC20_PAYMENT = 50_400n
const ERC20_FEE = 10_800n

/** What is known before a payment in a token. */
interface Erc20GasFacts extends PaymentGasFacts {
  /** The allowance is used up exactly. */
  readonly clearsAllowance: boolean
  /** The payer's balance is used up exactly. */
  readonly clearsBalance: boolean
}

/** The gas of `transferFromWithReferenceAndFee` of the ERC20 fee proxy. */
export function erc20PaymentGas(facts: Erc20GasFacts): bigint {
  let gas = ERC20_PAYMENT + receiverGas(facts, NEW_SLOT, ERC20_FEE)
  if (facts.clearsAllowance) gas -= CLEARED_SLOT
  if (facts.clearsBalance) gas -= CLEARED_SLOT
  return withMarginForTokens(gas)
}

const NATIVE_PAYMENT = 40_100n
const NATIVE_FEE = 9_600n
const NEW_ACCOUNT = 25_000n

/** The gas of `transferExactEthWithReferenceAndFee` of the native fee proxy. */
export function nativePaymentGas(facts: PaymentGasFacts): bigint {
  return withMarginForCalldata(NATIVE_PAYMENT + receiverGas(facts, NEW_ACCOUNT, NATIVE_FEE))
}

const ERC20_CONVERSION = 47_600n
const NATIVE_CONVERSION = 55_000n
const FURTHER_FEED = 18_600n

/** The gas of `transferFromWithReferenceAndFee` of the ERC20 conversion proxy. @param feeds - price feeds on its path */
export function erc20ConversionGas(facts: Erc20GasFacts, feeds: number): bigint {
  return erc20PaymentGas(facts) + withMarginForTokens(ERC20_CONVERSION + FURTHER_FEED * BigInt(feeds - 1))
}

/** The gas of `transferWithReferenceAndFee` of the native conversion proxy. @param feeds - price feeds on its path */
export function nativeConversionGas(facts: PaymentGasFacts, feeds: number): bigint {
  return nativePaymentGas(facts) + withMarginForTokens(NATIVE_CONVERSION + FURTHER_FEED * BigInt(feeds - 1))
}

/** The gas of several payments by a batch contract. @param each - a receiver that holds nothing is new once */
export function batchGas(each: readonly PaymentGasFacts[], isErc20: boolean): bigint {
  const [fixed, one, newReceiver, fee] = isErc20
    ? [75_000n, 21_600n, NEW_SLOT, 5_700n]
    : [37_000n, 27_300n, NEW_ACCOUNT, 7_100n]
  const gas = each.reduce((sum, facts) => sum + one + receiverGas(facts, newReceiver, fee), fixed)
  return isErc20 ? withMarginForTokens(gas) : withMarginForCalldata(gas)
}

/**
 * The gas limit for a transaction that uses so much after refunds: refunds, at most a fifth, are paid only at its end.
 *
 * @see https://eips.ethereum.org/EIPS/eip-3529
 */
export function gasToAllow(used: bigint): bigint {
  return (used * 5n + 3n) / 4n
}
