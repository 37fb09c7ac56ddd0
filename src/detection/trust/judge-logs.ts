import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { BlockRange } from '../read/chain-reader.ts'
import { type ComparedNodes, leaveBoth, leaveForWrongLogs } from './compared-nodes.ts'
import { proveLogs } from './prove-logs.ts'
import { firstDifference, logsWithin } from './same-logs.ts'

/** The logs that a node gives. */
interface Statement {
  readonly node: number
  readonly logs: readonly RpcLog[]
}

/** A final block of which two nodes give different logs. */
interface DisputedBlock {
  readonly block: number
  /** The contracts that were asked for; all followed ones where absent. */
  readonly addresses?: readonly Address[] | undefined
}

/** Decides which of two nodes gives wrong logs of a final block: by proof, else by a third node. Without either, both are blamed. @returns the blamed nodes */
export async function judgeLogs(
  nodes: ComparedNodes,
  { block, addresses = nodes.addresses }: DisputedBlock,
  statements: readonly Statement[],
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<number>> {
  const { peers } = nodes
  const range = { from: block, to: block, addresses }
  const wanted = new Set<string>(addresses)
  const clients = peers.map(({ client }) => client)
  const proven = await proveLogs(clients, block, wanted, signal)
  const truth = proven?.logs ?? (await askThird(nodes, range, statements, signal))
  const isWrong = ({ logs }: Statement) =>
    truth !== undefined && firstDifference(logsWithin(logs, range), truth) !== undefined
  const wrong = statements.filter(isWrong)
  const ask = async (node: number) => (await peers[node]?.reader.logsInRange(range))?.logs ?? []
  if (truth === undefined || wrong.length === 0) {
    const both = statements.map(({ node }) => node)
    leaveBoth(nodes, both, `they give different logs of block ${block}, and neither can prove its own`, async () => {
      const [one = [], other = []] = await Promise.all(both.map(ask))
      return firstDifference(one, other) === undefined
    })
    return new Set(both)
  }
  for (const { node } of wrong) {
    const reason = `it gives other logs of block ${block} than the chain has`
    await leaveForWrongLogs(nodes, node, reason, async () => firstDifference(await ask(node), truth) === undefined)
  }
  return new Set(wrong.map(({ node }) => node))
}

/** @returns the logs of a third node that agrees with exactly one of the two */
async function askThird(
  { peers, suspected }: ComparedNodes,
  range: BlockRange,
  statements: readonly Statement[],
  signal: AbortSignal | undefined,
): Promise<readonly RpcLog[] | undefined> {
  for (const [index, { reader }] of peers.entries()) {
    if (suspected.has(index) || statements.some(({ node }) => node === index)) continue
    const read = await reader.logsInRange(range, signal).catch(() => undefined)
    signal?.throwIfAborted()
    const agreeing = statements.filter(
      ({ logs }) => read && firstDifference(logsWithin(logs, range), read.logs) === undefined,
    )
    if (agreeing.length === 1) return read?.logs
  }
  return undefined
}
