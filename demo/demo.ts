/**
 * The whole demo, in the steps of its host:
 *
 *   const demo = await startDemo({ dataDir, logger, now })   // chains run and have their payments; demo.configs describes them
 *   …drop the rows of demo.freshChains, start the service and detection on demo.configs…
 *   await demo.seed(requests)                               // stores the requests of the payments; then clocks and bridge run
 *   await demo.live({ baseUrl, apiKey })                    // demo.json written; the live payer pays
 *   importLines(demo.earlierPayments(180).lines, …)         // behind the first answer
 *   await demo.stop()
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from '../src/domain/logger.ts'
import { type Bridge, startBridge } from './bridge/bridge.ts'
import { toBridgeChain } from './bridge/bridge-chain.ts'
import { type DemoFile, describeDemo, removeDemoFile, writeDemoFile } from './demo-file.ts'
import { type DemoRequests, type DemoRequestTerms, referenceOf } from './history/demo-requests.ts'
import { earlierLines, nameOfLines } from './history/earlier-lines.ts'
import { planHistory } from './history/history.ts'
import { writeHistory } from './history/history-writer.ts'
import type { PlannedPayment } from './history/planned-payment.ts'
import { inListedOrder, planSeeds, type Seed } from './history/seeds.ts'
import { createLivePayer } from './live-payer.ts'
import type { BlockHeader } from './network/chain-client.ts'
import { type Clock, createClock } from './network/clock.ts'
import { type DemoChain, type DemoNetwork, GENESIS_DAYS_AGO, readGenesis, startNetwork } from './network/network.ts'
import { createPayableRequestKeeper } from './payable-requests.ts'
import { createWalletCalls } from './wallets/wallet-calls.ts'

const DAY_SEC = 86_400
/** The history is followed by the payments of the requests in demo.json, and by empty blocks until those are final. */
const HISTORY_ENDS_SEC_AGO = 2_700
const SEEDS_PAID_SEC_AGO = 1_800
/** How long payer, bridge and clocks may take to end. */
const STOP_GRACE_MS = 5_000
/** How often the requests to pay are looked at. */
const KEEP_EVERY_MS = 10_000

export type Demo = Awaited<ReturnType<typeof startDemo>>

/**
 * Starts the chains of the demo, and makes the payments of fresh ones, which needs no database. Chains of the last run continue if their state
 * is in `dataDir`.
 *
 * @throws AnvilStartError when no node can run here
 */
export async function startDemo(context: RunContext) {
  const folder = join(context.dataDir, 'chains')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const network = await startNetwork({ ...context, folder })
  // No other demo uses the folder now. Who waits for the file must not find that of a run that was killed.
  await removeDemoFile(context.dataDir)
  const [plans, bridge] = await prepare(network, context).catch(async (error: unknown) => {
    await network.stop()
    throw error
  })
  return {
    /** The demo's chains, as a chains file would describe them. */
    configs: network.configs,
    /** Names of chains that this start created. Stored rows of an earlier chain of that name are obsolete. */
    freshChains: network.chains.filter(({ fresh }) => fresh).map(({ spec }) => spec.name),
    /** Settles when a chain's node ended unexpectedly. */
    crashed: network.crashed,
    /** URL of the bridge between the chains, which has the API of LI.FI. */
    bridgeUrl: bridge.url,
    /** What pages may ask of the wallets. */
    wallets: createWalletCalls(network.chains),
    ...createRun({ network, bridge, plans }, context),
  }
}

async function prepare({ chains }: DemoNetwork, { now, logger }: Omit<RunContext, 'dataDir'>) {
  const plans = await Promise.all(chains.map(planChain))
  await Promise.all(plans.filter(({ chain }) => chain.fresh).map((plan) => carryOut(plan, now())))
  return [plans, await startBridge(chains.map(bridgeChainOf), { now, logger })] as const
}

function bridgeChainOf({ spec, client, deployed, people }: DemoChain) {
  const { name, chainId, tipPerGas } = spec
  return toBridgeChain({ name, chainId, tipPerGas, client, deployed, relayer: people.relayer })
}

/** The running parts of a demo. */
export interface DemoControls {
  readonly file: DemoFile
  readonly bridge: Bridge
  readonly chains: readonly (DemoChain & { readonly clock: Clock })[]
}

interface RunContext {
  dataDir: string
  logger: Logger
  now: () => Date
}

function createRun(
  { network, bridge, plans }: { network: DemoNetwork; bridge: Bridge; plans: readonly ChainPlan[] },
  context: RunContext,
) {
  const { logger, now } = context
  const { chains } = network
  let clocks: readonly Clock[] = []
  let seeded: DemoRequests | undefined
  const described = Promise.withResolvers<DemoFile>()
  const stopping = new AbortController()
  let paying: Promise<void> = Promise.resolve()

  return {
    /** Stores the requests of the demo. Afterwards the chains mine by themselves. */
    async seed(requests: DemoRequests): Promise<void> {
      await requests.create(plans.flatMap((plan) => plan.terms))
      await Promise.all(chains.filter(({ fresh }) => fresh).map(markComplete))
      const heads = await Promise.all(chains.map((chain) => chain.client.head()))
      clocks = chains.map((chain, index) =>
        createClock(chain, { now, logger, startBlock: heads[index] as BlockHeader }),
      )
      // Prices are as old as the last run; conversions would be refused until the feeds move.
      await Promise.all(clocks.map((clock) => clock.mineNow()))
      for (const clock of clocks) clock.start()
      bridge.relay()
      seeded = requests
    },

    /** Writes demo.json and starts the live payer. @returns the content of demo.json */
    async live(access: Pick<DemoFile, 'baseUrl' | 'apiKey' | 'publishableKey'>): Promise<DemoFile> {
      if (!seeded) throw new Error('call seed() before live()')
      const requests = seeded
      const seeds = inListedOrder(plans.flatMap((plan) => plan.seeds))
      const payable = createPayableRequestKeeper(chains, { requests, now })
      const write = async (): Promise<DemoFile> => {
        const listed = [...seeds, ...toPay]
        const file = describeDemo({ ...access, bridgeUrl: bridge.url }, { chains, requests: listed, toPay: toPay[0] })
        await writeDemoFile(context.dataDir, file)
        described.resolve(file)
        return file
      }
      let toPay = await payable.keep()
      const file = await write()
      const payer = createLivePayer(chains, { requests, madeAtSec: plans[0]?.madeAtSec ?? 0, now, logger })
      const paid = repeat(
        stopping.signal,
        logger,
        () => payer.nextInMs(),
        () => payer.payOnce(),
      )
      const kept = repeat(
        stopping.signal,
        logger,
        () => KEEP_EVERY_MS,
        async () => {
          const before = toPay
          toPay = await payable.keep()
          const fresh = toPay.filter((request) => !before.includes(request))
          if (fresh.length === 0) return
          await write()
          const paymentReferences = fresh.map(({ terms }) => referenceOf(terms))
          logger.info({ paymentReferences }, 'demo.json has new requests')
        },
      )
      paying = Promise.all([paid, kept]).then(() => {})
      return file
    },

    /** What the sandbox works on, once `live` has been called. */
    async controls(): Promise<DemoControls> {
      const file = await described.promise
      return { file, bridge, chains: chains.map((chain, at) => ({ ...chain, clock: clocks[at] as Clock })) }
    },

    /**
     * The merchant's payments before those on the chains, as lines of an import. The same at every start, and so is their name.
     *
     * @param days - how far they reach back
     */
    earlierPayments(days: number) {
      const earlier = plans.map(({ chain: { spec, people }, ...times }) => ({ spec, people, ...times }))
      return { name: nameOfLines(earlier, days), lines: earlierLines(earlier, days) }
    },

    /** Stops payer, clocks and chains, after which the chains' state is on disk. */
    async stop(): Promise<void> {
      stopping.abort()
      await stopAll(
        [() => paying, () => bridge.stop(), () => Promise.all(clocks.map((clock) => clock.stop()))],
        network,
      )
      await removeDemoFile(context.dataDir)
    },
  }
}

/** Stops what uses the nodes, one after the other, then the nodes. */
async function stopAll(users: readonly (() => Promise<unknown>)[], network: DemoNetwork): Promise<void> {
  let quiet: Promise<unknown> = Promise.resolve()
  for (const stop of users) quiet = quiet.then(stop)
  // A node that hangs keeps its users waiting. Their calls fail when the network ends it.
  await Promise.race([quiet, setTimeout(STOP_GRACE_MS, undefined, { ref: false })])
  await network.stop()
  await quiet
}

interface ChainPlan {
  chain: DemoChain
  seeds: readonly Seed[]
  terms: readonly DemoRequestTerms[]
  payments: readonly PlannedPayment[]
  /** When the chain was made, at the end of its history. */
  madeAtSec: number
  /** The first payment of the history. */
  beginsSec: number
}

/** Times are relative to the chain's genesis, so that a later start makes the same plan. */
async function planChain(chain: DemoChain): Promise<ChainPlan> {
  const { timestampSec: genesisSec } = await readGenesis(chain.client)
  const madeAtSec = genesisSec + GENESIS_DAYS_AGO * DAY_SEC
  const history = planHistory(chain.spec, chain.people, {
    fromSec: genesisSec + DAY_SEC,
    toSec: madeAtSec - HISTORY_ENDS_SEC_AGO,
    madeAtSec,
  })
  const seeds = planSeeds(chain.spec, chain.people, madeAtSec - SEEDS_PAID_SEC_AGO)
  const all = [...history, ...seeds]
  return {
    chain,
    seeds,
    terms: all.map((entry) => entry.terms),
    payments: all.flatMap((entry) => entry.payments),
    madeAtSec,
    beginsSec: Math.min(...history.flatMap(({ payments }) => payments.map(({ atSec }) => atSec))),
  }
}

async function carryOut({ chain, payments }: ChainPlan, now: Date): Promise<void> {
  await writeHistory(chain, payments, Math.floor(now.getTime() / 1000) - 1)
  await chain.state.save(chain.client.rpc)
}

/**
 * A start that ends before creates the chain again. So a chain is complete only once the host has dropped the rows of an earlier chain of that
 * name.
 */
async function markComplete(chain: DemoChain): Promise<void> {
  const genesis = await readGenesis(chain.client)
  await chain.state.complete({
    chainId: chain.spec.chainId,
    genesisHash: genesis.hash,
    genesisTimeSec: genesis.timestampSec,
  })
}

/** Runs a step again and again until it is stopped, each after a wait. A failed step is logged, and the next one runs all the same. */
async function repeat(
  signal: AbortSignal,
  logger: Logger,
  waitMs: () => number,
  step: () => Promise<unknown>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await setTimeout(waitMs(), undefined, { signal })
      await step()
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'the live payer or the renewal of requests failed')
    }
  }
}
