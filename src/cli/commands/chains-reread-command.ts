import type { RereadChange, RereadStep } from '../../detection/repair/reread-range.ts'
import type { Proof } from '../../detection/trust/proven-reads.ts'
import { type BlockRun, describeRun, withBlocks } from '../../domain/chain.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { withNodeLimits } from '../keep-limits.ts'
import { openDetection } from '../open-detection.ts'
import { chainNamed, findChains, readSetup } from '../read-chains.ts'
import { EXIT_FAILED, EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** `chains reread NAME --from A --to B`: one line a change, columns separated by tabs. */
export const chainsReread: Command = {
  path: ['chains', 'reread'],
  summary:
    'Read final blocks of a chain again, and add, correct or remove payments, refunds and unmatched events until they equal what the ' +
    'blocks hold. Imported payments stay. The logs of a block are proven by its receipts, or by two nodes that give the same; standard ' +
    'error counts the blocks of each kind. A block that is not proven is refused, unless --node names the node to believe. One line a ' +
    'change: account (- for none), chain, request, kind, id, change. The service may run; a second run changes nothing. Exit code 1 ' +
    'when a transaction or a block could not be read.',
  positionals: [{ name: 'NAME', help: 'the chain, by a name or id' }],
  options: [
    { name: 'from', value: 'BLOCK', help: 'the first block', required: true },
    { name: 'to', value: 'BLOCK', help: 'the last block, which must be final and read', required: true },
    {
      name: 'node',
      value: 'HOST',
      help: 'the node to ask first, and to believe where nothing is proven (default: none)',
    },
    { name: 'dry-run', help: 'change nothing, only show what would change' },
  ],
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ positionals: [word = ''], options }, context) {
    const { from, to } = parseRange(options)
    const setup = await readSetup(context)
    const { config } = setup
    const chains = await findChains(setup, context)
    const { name, rpcUrls } = chainNamed(chains, word)
    const node = options.node === undefined ? undefined : parseNode(options.node, rpcUrls)
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const isTrial = options['dry-run'] !== undefined
    return withStore(config, context, async (knex) => {
      const proofs = countProofs()
      const onProof = (block: number, proof: Proof) => proofs.note(block, proof)
      const terms = { from, to, isTrial, node, actor: context.actor, signal: context.signal, onProof }
      const isAllRead = await withNodeLimits({ knex, chains, logger }, (limits) => {
        const detection = openDetection({ knex, chains, logger, limits })
        return reportReread(detection.reread(name, terms), { ...context, name, from, to, node, proofs })
      })
      if (isTrial) context.stderr.write('nothing was changed\n')
      return isAllRead ? EXIT_GOOD : EXIT_FAILED
    })
  },
}

/** Counts blocks by how they were proven. A block counts when its step is done, since a range may be read more than once. */
interface ProofCounts {
  note(block: number, proof: Proof): void
  /** Counts the blocks up to one. @returns those that are not proven, lowest first */
  settle(block: number): number[]
  describe(): string
}

function countProofs(): ProofCounts {
  const open = new Map<number, Proof>()
  const counts: Record<Proof, number> = { RECEIPTS: 0, TWO_NODES: 0, NO_LOGS: 0, BELIEVED: 0 }
  return {
    note: (block, proof) => open.set(block, proof),
    settle(until) {
      const done = [...open].filter(([block]) => block <= until).toSorted(([a], [b]) => a - b)
      for (const [block, proof] of done) {
        counts[proof]++
        open.delete(block)
      }
      return done.flatMap(([block, proof]) => (proof === 'BELIEVED' ? [block] : []))
    },
    describe() {
      const { RECEIPTS, TWO_NODES, NO_LOGS, BELIEVED } = counts
      const without = `${NO_LOGS} without followed events by their blooms`
      return `blocks proven by receipts ${RECEIPTS}, by two nodes ${TWO_NODES}, ${without}, not proven ${BELIEVED}`
    },
  }
}

interface Report extends Pick<CommandContext, 'stdout' | 'stderr'> {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly node: string | undefined
  readonly proofs: ProofCounts
}

/** @returns whether every transaction could be read */
async function reportReread(
  steps: AsyncIterable<RereadStep>,
  { stdout, stderr, name, from, to, node, proofs }: Report,
): Promise<boolean> {
  const sum = { changes: 0, unread: 0, block: from - 1 }
  let reportedMs = performance.now()
  const totals = () => `${name}: blocks ${from} to ${sum.block} read, ${sum.changes} changes`
  const tell = (text: string) => stderr.write(`${name}: ${text}\n`)
  let believed: readonly BlockRun[] = []
  const tellBelieved = () => {
    for (const run of believed) tell(`${describeRun(run)} not proven: ${node} was believed`)
  }
  try {
    for await (const { block, changes, unread } of steps) {
      sum.block = Math.max(sum.block, block)
      sum.changes += changes.length
      sum.unread += unread.length
      for (const change of changes) await writeFully(stdout, `${lineOf(name, change)}\n`)
      believed = withBlocks(believed, proofs.settle(sum.block))
      for (const txHash of unread) tell(`transaction ${txHash} could not be traced and was left as it is`)
      if (performance.now() - reportedMs < REPORT_INTERVAL_MS) continue
      reportedMs = performance.now()
      stderr.write(`${totals()}\n`)
    }
  } catch (error) {
    tellBelieved()
    throw new Error(`${totals()}; it stopped early: ${remedyOf(error, { from, to, node, ...sum })}`, { cause: error })
  }
  tellBelieved()
  tell(proofs.describe())
  stderr.write(`${totals()}\n`)
  return sum.unread === 0
}

function remedyOf(
  error: unknown,
  { from, to, node, block }: Pick<Report, 'from' | 'to' | 'node'> & { readonly block: number },
): string {
  const again = block < from ? 'run it again' : `continue with --from ${Math.min(block + 1, to)}`
  const isUnproven = node === undefined && error instanceof RpcError && error.kind === 'INCONSISTENT'
  return isUnproven ? `${again}, and name a node to believe with --node` : again
}

function lineOf(network: string, { account = '-', requestId, what, id, change }: RereadChange): string {
  return [account, network, requestId || '-', what, id, change].join('\t')
}

function parseRange({ from, to }: Readonly<Record<string, string | undefined>>) {
  const range = { from: parseBlock('from', from), to: parseBlock('to', to) }
  if (range.from <= range.to) return range
  throw new UsageError(`--from ${range.from} is above --to ${range.to}: give the lower block first`)
}

function parseBlock(option: string, text = ''): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`--${option} is "${text}", which is not a block number: use a whole number`)
}

function parseNode(host: string, rpcUrls: readonly string[]): string {
  const hosts = rpcUrls.map((url) => new URL(url).host)
  if (hosts.includes(host)) return host
  throw new UsageError(`--node is "${host}", which is not a node of this chain; it has ${hosts.join(', ')}`)
}
