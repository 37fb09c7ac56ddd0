/** `DATA_DIR/demo.json`: everything that a newcomer or a script needs to try the demo. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type DemoRequestTerms, referenceOf } from './history/demo-requests.ts'
import type { DemoChain } from './network/network.ts'
import { writeAtomically } from './network/state-folder.ts'

export type DemoFile = ReturnType<typeof describeDemo>
export type DemoFileChain = DemoFile['chains'][number]

/** How the service and the bridge are reached. */
interface Access {
  readonly baseUrl: string
  readonly apiKey: string
  /** For pages of this machine's development servers: see docs/reference/keys-and-limits.md. */
  readonly publishableKey: string
  /** URL of the bridge, which has LI.FI's `/v1/quote/contractCalls` and `/v1/status`. */
  readonly bridgeUrl: string
}

interface ListedRequest {
  readonly terms: DemoRequestTerms
  readonly says: string
  readonly kind?: string
}

interface DemoContent {
  readonly chains: readonly DemoChain[]
  readonly requests: readonly ListedRequest[]
  /** The request of the checkout page. */
  readonly toPay: ListedRequest | undefined
}

export function describeDemo(access: Access, { chains, requests, toPay }: DemoContent) {
  const wallets = chains[0]?.people.wallets ?? []
  return {
    ...access,
    chains: chains.map(({ spec, gateway, deployed }) => ({
      name: spec.name,
      chainId: spec.chainId,
      rpcUrl: gateway.url,
      native: { symbol: spec.native.symbol, decimals: 18 },
      tokens: deployed.tokens.map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
      /** The contracts that payments and refunds call. */
      contracts: {
        erc20FeeProxy: deployed.contracts.erc20FeeProxy,
        ethereumFeeProxy: deployed.contracts.ethereumFeeProxy,
      },
    })),
    wallets: Object.fromEntries(wallets.map(({ name, address, says }) => [name, { address, says }])),
    /** `kind` is set for those that wait to be paid: `token`, `native`, `fiat`. */
    requests: requests.map(({ terms, says, kind }) => ({
      paymentReference: referenceOf(terms),
      requestId: terms.requestId,
      says,
      ...(kind !== undefined && { kind }),
    })),
    /** The checkout page of one of them, which a wallet can pay in several ways. */
    payUrl: toPay === undefined ? '' : `${access.baseUrl}/pay/${referenceOf(toPay.terms)}?key=${access.publishableKey}`,
  }
}

const pathIn = (dataDir: string) => join(dataDir, 'demo.json')

/** Replaces the file atomically: a reader sees the old one or the new one. */
export async function writeDemoFile(dataDir: string, file: DemoFile): Promise<void> {
  await writeAtomically(pathIn(dataDir), `${JSON.stringify(file, null, 2)}\n`)
}

/** The file exists only while its demo answers, or after that was killed. */
export const removeDemoFile = (dataDir: string): Promise<void> => rm(pathIn(dataDir), { force: true })
