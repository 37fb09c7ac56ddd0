/**
 * A node of the computed chain, as a process of its own: answers from memory, at once. Prints its URL. A line on standard input is
 * the number of a new head, whose block holds one more payment; once that is read, a line on standard output tells how often the head was asked for.
 *
 *   node bench/detection-node.ts '{"head":60000,"events":50000,"eventsABlock":1}'
 */
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { BENCH_CHAIN_ID, type BenchSize, benchBlock, benchPlace, benchReceipt } from './detection/bench-chain.ts'

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

interface LogFilter {
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: string
}

const size = JSON.parse(process.argv[2] ?? '{}') as BenchSize
let head = size.head
/** Written once: a node does not make its answers while it is measured. */
const receipts = new Map<string, string>()
const logs: string[] = []
const ofBlocks: string[] = []
/** Logs of the blocks that came while it runs, by hash. */
const newLogs = new Map<string, string>()
let payments = size.events
let checks = 0
let newest: string | undefined
for (let n = 0; n < size.events; n++) {
  const receipt = benchReceipt(n, benchPlace(size, n))
  receipts.set(receipt.transactionHash, JSON.stringify(receipt))
  logs.push(JSON.stringify(receipt.logs[2]))
}

function resultOf({ method, params: [first] }: Call): string {
  switch (method) {
    case 'eth_chainId':
      return `"0x${BENCH_CHAIN_ID.toString(16)}"`
    case 'eth_getBlockByNumber': {
      if (first === 'latest') checks++
      const number = first === 'latest' ? head : first === 'finalized' ? head - 3 : Number(first)
      return number > head ? 'null' : JSON.stringify(benchBlock(number))
    }
    case 'eth_getTransactionReceipt':
      if (first === newest) process.stdout.write(`${checks}\n`)
      return receipts.get(first as string) ?? 'null'
    case 'eth_getBlockReceipts':
      return receiptsOf(Number(first))
    case 'eth_getLogs':
      return logsIn(first as LogFilter)
    default:
      return 'null'
  }
}

function logsIn({ fromBlock, toBlock, blockHash = '' }: LogFilter): string {
  if (fromBlock === undefined || toBlock === undefined) return newLogs.get(blockHash) ?? '[]'
  const { eventsABlock } = size
  return `[${logs.slice((Number(fromBlock) - 1) * eventsABlock, Number(toBlock) * eventsABlock).join()}]`
}

function receiptsOf(block: number): string {
  const { eventsABlock, events } = size
  return (ofBlocks[block] ??= `[${Array.from({ length: eventsABlock }, (_, place) => (block - 1) * eventsABlock + place)
    .filter((n) => n >= 0 && n < events)
    .map((n) => JSON.stringify(benchReceipt(n, benchPlace(size, n))))
    .join()}]`)
}

const answer = (call: Call): string => `{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call)}}`

const server = createServer((request, response) => {
  void text(request).then(async (body) => {
    const calls = JSON.parse(body) as Call | Call[]
    if (size.rangeMs !== undefined && body.includes('"fromBlock"')) await sleep(size.rangeMs)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(Array.isArray(calls) ? `[${calls.map(answer).join()}]` : answer(calls))
  })
})
server.listen(0, '127.0.0.1', () => {
  const bound = server.address()
  if (typeof bound === 'object' && bound !== null) process.stdout.write(`http://127.0.0.1:${bound.port}\n`)
})
for await (const line of createInterface(process.stdin)) {
  head = Number(line)
  checks = 0
  const receipt = benchReceipt(payments++, { block: head, place: 0 })
  receipts.set(receipt.transactionHash, JSON.stringify(receipt))
  newest = receipt.transactionHash
  newLogs.set(receipt.blockHash, JSON.stringify([receipt.logs[2]]))
}
process.exit()
