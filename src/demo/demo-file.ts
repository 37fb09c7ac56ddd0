/** `DATA_DIR/demo.json`: everything that a newcomer or a script needs to try the demo. */
import { join } from 'node:path'
import { type DemoRequestTerms, referenceOf } from './history/demo-requests.ts'
import type { DemoChain } from './network/network.ts'
import { writeAtomically } from './network/state-folder.ts'

export interface DemoFile {
  baseUrl: string
  apiKey: string
  /** For pages of this machine's development servers: see docs/reference/keys-and-limits.md. */
  publishableKey: string
  /** URL of the bridge, which has LI.FI's `/v1/quote/contractCalls` and `/v1/status`. */
  bridgeUrl: string
  chains: readonly DemoFileChain[]
  wallets: Readonly<Record<string, { address: string; says: string }>>
  /** `kind` is set for those that wait to be paid: `token`, `native`, `fiat`. */
  requests: readonly { paymentReference: string; requestId: string; says: string; kind?: string }[]
  /** The page to pay one of them on, which a wallet can pay in several ways. */
  payUrl: string
}

export interface DemoFileChain {
  name: string
  chainId: number
  rpcUrl: string
  native: { symbol: string; decimals: number }
  tokens: readonly { symbol: string; address: string; decimals: number }[]
  /** The contracts that payments and refunds call. */
  contracts: { erc20FeeProxy: string; ethereumFeeProxy: string }
}

interface ListedRequest {
  readonly terms: DemoRequestTerms
  readonly says: string
  readonly kind?: string
}

interface DemoContent {
  readonly chains: readonly DemoChain[]
  readonly requests: readonly ListedRequest[]
  /** The request of the page to pay on. */
  readonly toPay: ListedRequest | undefined
}

export function describeDemo(
  { baseUrl, apiKey, publishableKey, bridgeUrl }: Pick<DemoFile, 'baseUrl' | 'apiKey' | 'publishableKey' | 'bridgeUrl'>,
  { chains, requests, toPay }: DemoContent,
): DemoFile {
  const wallets = chains[0]?.people.wallets ?? []
  return {
    baseUrl,
    apiKey,
    publishableKey,
    bridgeUrl,
    chains: chains.map(({ spec, gateway, deployed }) => ({
      name: spec.name,
      chainId: spec.chainId,
      rpcUrl: gateway.url,
      native: { symbol: spec.native.symbol, decimals: 18 },
      tokens: deployed.tokens.map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
      contracts: {
        erc20FeeProxy: deployed.contracts.erc20FeeProxy,
        ethereumFeeProxy: deployed.contracts.ethereumFeeProxy,
      },
    })),
    wallets: Object.fromEntries(wallets.map(({ name, address, says }) => [name, { address, says }])),
    requests: requests.map(({ terms, says, kind }) => ({
      paymentReference: referenceOf(terms),
      requestId: terms.requestId,
      says,
      ...(kind !== undefined && { kind }),
    })),
    payUrl: toPay === undefined ? '' : `${baseUrl}/pay/${referenceOf(toPay.terms)}?key=${publishableKey}`,
  }
}

/** Replaces the file atomically: a reader sees the old one or the new one. */
export async function writeDemoFile(dataDir: string, file: DemoFile): Promise<void> {
  await writeAtomically(join(dataDir, 'demo.json'), `${JSON.stringify(file, null, 2)}\n`)
}
