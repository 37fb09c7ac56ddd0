import type { RpcLog } from '../../contracts/decode-events.ts'

/** Compares the logs that two nodes give of the same final blocks. No I/O. */

/** @returns the lowest block whose logs differ; undefined where all are the same */
export function firstDifference(one: readonly RpcLog[], other: readonly RpcLog[]): number | undefined {
  const [ofOne, ofOther] = [byKey(one), byKey(other)]
  const onlyOne = [...ofOne].filter(([key]) => !ofOther.has(key))
  const onlyOther = [...ofOther].filter(([key]) => !ofOne.has(key))
  const blocks = [...onlyOne, ...onlyOther].map(([, block]) => block)
  return blocks.length === 0 ? undefined : Math.min(...blocks)
}

/** The logs of blocks `from` to `to`, both included. */
export function logsWithin(logs: readonly RpcLog[], { from, to }: { readonly from: number; readonly to: number }) {
  return logs.filter(({ blockNumber }) => Number(blockNumber) >= from && Number(blockNumber) <= to)
}

function byKey(logs: readonly RpcLog[]): Map<string, number> {
  return new Map(
    logs.map((log) => {
      const { address, topics, data, blockNumber, blockHash, transactionHash, logIndex } = log
      const place = [Number(blockNumber), blockHash, transactionHash, Number(logIndex)]
      return [[...place, address, topics.join(), data].join(' ').toLowerCase(), Number(blockNumber)]
    }),
  )
}
