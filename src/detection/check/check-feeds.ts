import type { ChainConfig, ConversionPath } from '../../chains/chains-file.ts'
import { addressesOfPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readPathRate } from '../../contracts/contract-reads.ts'
import { readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { roundIn } from '../read/feed-rounds.ts'
import { pathRateIn } from '../read/path-rates.ts'
import { type CheckedFact, judgeOf } from './checked-fact.ts'
import { type CheckedNode, isWord, readContract } from './checked-node.ts'

/** Checks that each feed answers a price that is not stale. @throws RpcError when the node does not answer */
export async function* checkFeeds(
  node: CheckedNode,
  { native, tokens }: ChainConfig,
  clock: () => Date,
): AsyncGenerator<CheckedFact, void> {
  for (const { symbol, usdFeed, heartbeatSeconds } of [native, ...tokens]) {
    if (usdFeed !== undefined) yield await checkFeed(node, { symbol, usdFeed, heartbeatSeconds }, clock())
  }
}

async function checkFeed(
  node: CheckedNode,
  priced: { readonly symbol: string; readonly usdFeed: Address; readonly heartbeatSeconds: number | undefined },
  now: Date,
): Promise<CheckedFact> {
  const { symbol, usdFeed, heartbeatSeconds = 0 } = priced
  const judge = judgeOf('feed', symbol)
  const answer = await readContract(node, readLatestRound(usdFeed))
  const decimals = await readContract(node, readDecimals(usdFeed))
  const round = answer instanceof RpcError ? undefined : roundIn({ ok: true, result: answer })
  if (round === undefined || round.answer <= 0n) return judge('wrong', 'latestRoundData() answers no price')
  if (decimals instanceof RpcError || !isWord(decimals)) return judge('wrong', 'decimals() answers no number')
  const ageSec = Math.round(now.getTime() / 1_000 - round.updatedAtSec)
  const age = `its answer is ${ageSec} s old`
  if (ageSec <= heartbeatSeconds) return judge('ok', age)
  return judge('wrong', `${age}, older than ${heartbeatSeconds} s: it is not used`)
}

/** Checks that each conversion path has a rate that is not stale. @throws RpcError when the node does not answer */
export async function* checkConversions(
  node: CheckedNode,
  { conversion, native, tokens }: ChainConfig,
  clock: () => Date,
): AsyncGenerator<CheckedFact, void> {
  if (conversion === undefined) return
  for (const path of conversion.paths) {
    const into: PathEnd | undefined = [native, ...tokens].find(({ symbol }) => symbol === path.token)
    if (into !== undefined) yield await checkPath(node, { contract: conversion.path, path, into }, clock())
  }
}

interface PathEnd {
  readonly symbol: string
  /** Absent for the native coin. */
  readonly address?: Address
}

/** Without a rate nobody can pay by this path, and payments by other paths do not count. */
async function checkPath(
  node: CheckedNode,
  { contract, path, into }: { readonly contract: Address; readonly path: ConversionPath; readonly into: PathEnd },
  now: Date,
): Promise<CheckedFact> {
  const judge = judgeOf('conversion', `${path.from} to ${path.token}`)
  const answer = await readContract(node, readPathRate(contract, addressesOfPath(path, into)))
  if (answer instanceof RpcError) return judge('wrong', `getRate() fails: ${answer.message}`)
  const rate = pathRateIn({ ok: true, result: answer })
  if (rate === undefined) return judge('wrong', 'getRate() answers no rate')
  const ageSec = Math.round(now.getTime() / 1_000) - Number(rate.oldestSec)
  const limitSec = maxRateAgeSeconds(path)
  const age = `its oldest feed is ${ageSec} s old`
  if (ageSec <= limitSec) return judge('ok', age)
  return judge('wrong', `${age}, older than ${limitSec} s: nothing can be converted`)
}
