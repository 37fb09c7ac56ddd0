import { type Abi, encodeFunctionData, erc20Abi, type Hex, parseAbi } from 'viem'
import { expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import {
  readAggregator,
  readAllowance,
  readBlockTimestamp,
  readConversion,
  readExactOutput,
  readL1FeeUpperBound,
  readNativeBalance,
  readPathRate,
  readPricesInWei,
  readReserves,
  readSlot0,
  readSwapFee,
  readSwapRouter,
  readTokenBalance,
} from './contract-reads.ts'
import type { ContractRead } from './multicall.ts'
import { readDecimals, readLatestRound, readRound } from './price-feed.ts'
import { readSymbol } from './returned-texts.ts'

const tokenAbi: Abi = erc20Abi
const abi: Abi = parseAbi([
  'function getEthBalance(address)',
  'function getCurrentBlockTimestamp()',
  'function latestRoundData()',
  'function getRoundData(uint80)',
  'function getConversion(uint256, address[])',
  'function getRate(address[])',
  'function allAggregators(address, address)',
  'function getReserves()',
  'function swapRouter()',
  'function requestSwapFees()',
  'function slot0()',
  'function quoteExactOutputSingle((address tokenIn, address tokenOut, uint256 amount, uint24 fee, uint160 sqrtPriceLimitX96))',
  'function getL1FeeUpperBound(uint256)',
  'function getPricesInWei()',
])

const [a, b, c] = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`) as [
  Address & Hex,
  Address & Hex,
  Address & Hex,
]
const pool = { tokenIn: a, tokenOut: b, amount: 5n, fee: 3_000, sqrtPriceLimitX96: 0n }
const known = (functionName: string, args: readonly unknown[] = []) => encodeFunctionData({ abi, functionName, args })
const ofToken = (functionName: string, args: readonly unknown[] = []) =>
  encodeFunctionData({ abi: tokenAbi, functionName, args })

it.each<[ContractRead, Hex]>([
  [readTokenBalance(c, a), ofToken('balanceOf', [a])],
  [readAllowance(c, a, b), ofToken('allowance', [a, b])],
  [readSymbol(c), ofToken('symbol')],
  [readDecimals(c), ofToken('decimals')],
  [readNativeBalance(c, a), known('getEthBalance', [a])],
  [readBlockTimestamp(c), known('getCurrentBlockTimestamp')],
  [readLatestRound(c), known('latestRoundData')],
  [readRound(c, 7n), known('getRoundData', [7n])],
  [readConversion(c, 9n, [a, b]), known('getConversion', [9n, [a, b]])],
  [readPathRate(c, [a, b, c]), known('getRate', [[a, b, c]])],
  [readAggregator(c, a, b), known('allAggregators', [a, b])],
  [readReserves(c), known('getReserves')],
  [readSwapRouter(c), known('swapRouter')],
  [readSwapFee(c), known('requestSwapFees')],
  [readSlot0(c), known('slot0')],
  [readExactOutput(c, { tokenIn: a, tokenOut: b, amountOut: 5n, fee: 3_000 }), known('quoteExactOutputSingle', [pool])],
  [readL1FeeUpperBound(c, 300), known('getL1FeeUpperBound', [300n])],
  [readPricesInWei(c), known('getPricesInWei')],
])('a read is encoded as viem encodes it: %j', (read, data) => {
  expect(read).toEqual({ to: c, data })
})
