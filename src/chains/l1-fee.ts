import { readL1FeeUpperBound, readPricesInWei } from '../contracts/contract-reads.ts'
import type { ContractRead } from '../contracts/multicall.ts'
import { uintAt } from '../contracts/words.ts'
import { type Address, parseAddress } from '../domain/address.ts'

/** The fee that a rollup takes, beside its own gas, for publishing a transaction on its parent chain. */
export interface L1Fee {
  /** Whether it is taken as gas, which the transaction's limit has to cover, and not beside it. */
  readonly isGas: boolean
  /** Whether receipts tell it apart from the gas, as `l1Fee`. */
  readonly isInReceipts: boolean
  readonly reads: readonly ContractRead[]
  /**
   * The fee of one transaction in wei; undefined when its chain gave no answer.
   *
   * @param dataBytes - bytes of its calldata
   */
  feeOf(dataBytes: number, answerTo: (read: ContractRead) => string | undefined): bigint | undefined
}

/** @see https://specs.optimism.io/protocol/predeploys.html, GasPriceOracle */
const OP_STACK_ORACLE = known('0x420000000000000000000000000000000000000f')

/** @see https://docs.arbitrum.io, ArbGasInfo */
const ARBITRUM_GAS_INFO = known('0x000000000000000000000000000000000000006c')

/** The most that an unsigned EIP-1559 transaction has beside its calldata. */
const ENVELOPE_BYTES = 80

/** A signature. OP stacks count it by themselves. */
const SIGNATURE_BYTES = 68

/**
 * Calldata lengths that OP stacks are asked about, all in one request, before it is known which transactions will be sent: first the exact
 * lengths of approvals, payments, conversions and swaps, then steps for calldata that a bridge supplies.
 */
const DATA_BYTES = [68, 228, 260, 388, 420, 452, 484, 1_024, 2_048, 4_096, 8_192]

/** Takes the oracle's upper bound for a transaction of that length. */
function createOpStackFee(): L1Fee {
  const bounds = DATA_BYTES.map((bytes) => ({
    bytes,
    read: readL1FeeUpperBound(OP_STACK_ORACLE, bytes + ENVELOPE_BYTES),
  }))
  return {
    isGas: false,
    isInReceipts: true,
    reads: bounds.map(({ read }) => read),
    feeOf(dataBytes, answerTo) {
      const bound = bounds.find(({ bytes }) => bytes >= dataBytes) ?? bounds.at(-1)
      const fee = bound && uintAt(answerTo(bound.read), 0)
      if (bound === undefined || fee === undefined) return undefined
      return fee * BigInt(Math.max(1, Math.ceil(dataBytes / bound.bytes)))
    },
  }
}

/** Counts every byte at the full price, as if nothing could be compressed. */
function createArbitrumFee(): L1Fee {
  const read = readPricesInWei(ARBITRUM_GAS_INFO)
  return {
    isGas: true,
    isInReceipts: false,
    reads: [read],
    feeOf(dataBytes, answerTo) {
      const perByte = uintAt(answerTo(read), 1)
      return perByte === undefined ? undefined : perByte * BigInt(dataBytes + ENVELOPE_BYTES + SIGNATURE_BYTES)
    },
  }
}

function known(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new TypeError(parsed.detail)
  return parsed.address
}

/** The kinds of rollups that charge by the size of a transaction, as a chains file names them. */
export const l1Fees = { OP_STACK: createOpStackFee(), ARBITRUM: createArbitrumFee() }
