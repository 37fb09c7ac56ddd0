import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { Logger } from '../../domain/logger.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { hiderOf, nameNodes } from './check-chain.ts'
import { checkCode, checkDecimals, contractsOf, type NamedAddress } from './check-contracts.ts'
import { type CheckedFact, type CheckedNode, openNode } from './checked-node.ts'

/** What is wrong with a contract or token of the chains file. */
interface WrongAddress {
  readonly contract: string
  readonly detail: string
}

export type ChainComparison = ReturnType<typeof createChainComparison>

interface ComparisonOptions {
  readonly chains: readonly ChainConfig[]
  readonly clock: () => Date
  readonly logger: Logger
  readonly limits: NodeLimits
}

/** What one node said of each address; undefined where it could not say. */
type NodeAnswers = ReadonlyMap<Address, CheckedFact>

/** A node of a chain. */
interface ComparedNode {
  readonly name: string
  readonly url: string
  /** Absent until it has answered. What is wrong by them, it has said twice. */
  answers?: NodeAnswers
}

interface ComparedChain {
  readonly config: ChainConfig
  readonly nodes: readonly ComparedNode[]
  wrong: ReadonlyMap<Address, WrongAddress>
}

/** For one exchange with a node: the start waits for the first round. */
const TIMEOUT_MS = 2_000

/**
 * Makes what compares what payers are sent to with what the nodes answer, while the service runs.
 *
 * One node may lie or lag, so it takes nothing away: an address is wrong where two nodes say so, or the only node that can say. It is right again as
 * soon as that no longer holds.
 */
export function createChainComparison(options: ComparisonOptions) {
  const chains = options.chains.map((config): ComparedChain => {
    const names = nameNodes(config.rpcUrls)
    const nodes = config.rpcUrls.map((url, at) => ({ name: names[at] ?? '', url }))
    return { config, nodes, wrong: new Map() }
  })
  const byName = new Map(chains.map((chain) => [chain.config.name, chain]))
  return {
    /**
     * Compares all nodes that were not compared yet, or that said that something is wrong; a node that does not answer is asked in the next round.
     * Ends early when the signal fires.
     */
    async round(signal: AbortSignal): Promise<void> {
      await Promise.all(chains.map((chain) => compareChain(chain, options, signal)))
    },
    /** What two answers say is wrong with a contract or token; undefined where nothing is. @param chain - its name */
    wrongWith: ({ chain, address }: { readonly chain: string; readonly address: Address }) =>
      byName.get(chain)?.wrong.get(address),
  }
}

async function compareChain(chain: ComparedChain, options: ComparisonOptions, signal: AbortSignal): Promise<void> {
  const due = chain.nodes.filter(({ answers }) => answers === undefined || hasWrong(answers))
  await Promise.all(due.map((node) => compareNode(chain, node, options, signal)))
  if (!signal.aborted) decide(chain, options)
}

const hasWrong = (answers: NodeAnswers) => [...answers.values()].some(isWrong)
const isWrong = ({ verdict }: CheckedFact) => verdict === 'wrong'

async function compareNode(
  { config }: ComparedChain,
  node: ComparedNode,
  { clock, limits, logger }: ComparisonOptions,
  signal: AbortSignal,
): Promise<void> {
  const { chainId, name: chain } = config
  const asked = openNode({
    url: node.url,
    chainId,
    clock,
    limits,
    signal,
    timeoutMs: TIMEOUT_MS,
    maxWaitMs: TIMEOUT_MS,
  })
  try {
    const first = await askAll(asked, config)
    const answers = hasWrong(first) ? await askAll(asked, config) : first
    // What it says only once may be chance: it is asked again in the next round.
    if ([...answers].some(([address, fact]) => isWrong(fact) && !saysWrong(first, address))) return
    for (const [address, { subject, check, verdict, detail }] of answers) {
      if (verdict !== 'wrong' || saysWrong(node.answers, address)) continue
      logger.warn({ chain, node: node.name, contract: subject, check, detail }, 'a node contradicts the chains file')
    }
    node.answers = answers
  } catch (error) {
    if (signal.aborted) return
    if (!(error instanceof RpcError)) throw error
    const fields = { chain, node: node.name, detail: hiderOf(node.url)(error.message) }
    // Whatever else it says, a node of another chain is used by nobody: each client asks for its chain id first.
    if (error.kind === 'WRONG_CHAIN') logger.error(fields, 'the node is of another chain than the chains file says')
    else logger.debug(fields, 'the chains file could not be compared with the node; it is tried again')
  }
}

/** Asks for the code at each address and the decimals of each token. The client asks for the chain id first. */
async function askAll(node: CheckedNode, config: ChainConfig): Promise<NodeAnswers> {
  const answers = new Map<Address, CheckedFact>()
  const keep = ({ address }: Pick<NamedAddress, 'address'>, fact: CheckedFact) => {
    const before = answers.get(address)
    if (before === undefined || !isWrong(before)) answers.set(address, fact)
  }
  for (const named of contractsOf(config)) keep(named, await checkCode(node, named))
  for (const token of config.tokens) keep(token, await checkDecimals(node, token))
  return answers
}

/** Decides what is wrong by the answers so far, and tells the operator of what has changed. */
function decide(chain: ComparedChain, { logger }: ComparisonOptions): void {
  const { config, nodes, wrong: before } = chain
  const wrong = new Map<Address, WrongAddress>()
  for (const { subject, address } of contractsOf(config)) {
    const against = nodes.filter(({ answers }) => saysWrong(answers, address))
    const isContradicted = nodes.some(({ answers }) => answers?.get(address)?.verdict === 'ok')
    const [first] = against
    if (first === undefined || (against.length === 1 && isContradicted)) continue
    const fact = first.answers?.get(address)
    const detail = fact?.check === 'decimals' ? `its decimals are ${fact.detail}` : (fact?.detail ?? '')
    wrong.set(address, { contract: subject, detail: hiderOf(first.url)(detail) })
  }
  chain.wrong = wrong
  for (const [address, { contract, detail }] of wrong) {
    if (before.has(address)) continue
    const alarm = `${contract} is not what the chains file says: ${detail}`
    logger.error({ chain: config.name, contract, address, alarm }, 'routes through this contract are taken away')
  }
  for (const [address, { contract }] of before) {
    if (!wrong.has(address))
      logger.info({ chain: config.name, contract, address }, 'the contract is as the chains file says')
  }
}

function saysWrong(answers: NodeAnswers | undefined, address: Address): boolean {
  return answers?.get(address)?.verdict === 'wrong'
}
