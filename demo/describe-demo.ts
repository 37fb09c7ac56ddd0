import { mnemonicToAccount } from 'viem/accounts'
import type { ChainConfig } from '../src/chains/chains-file.ts'
import type { DemoFileChain } from './demo-file.ts'
import { describeChain } from './network/chain-config.ts'
import { DEMO_CHAINS } from './network/chain-specs.ts'
import { planDeployment } from './network/deployment.ts'
import { DEMO_MNEMONIC, DEPLOYER_PLACE, RELAYER_PLACE } from './network/people.ts'

/** A URL without a node: the demo's nodes get new ports at each start. */
const NO_NODE = 'http://127.0.0.1:1'

/**
 * The chains of the demo, as a chains file would describe them.
 *
 * @param nodes - of a running demo; absent when only names and tokens are needed
 */
export function describeDemoChains(nodes: readonly Pick<DemoFileChain, 'name' | 'rpcUrl'>[] = []): ChainConfig[] {
  const people = { deployer: addressAt(DEPLOYER_PLACE), relayer: addressAt(RELAYER_PLACE) }
  return DEMO_CHAINS.map((spec) => {
    const { rpcUrl = NO_NODE } = nodes.find(({ name }) => name === spec.name) ?? {}
    return describeChain(spec, rpcUrl, planDeployment(spec, people, 0).deployed)
  })
}

function addressAt(addressIndex: number) {
  return mnemonicToAccount(DEMO_MNEMONIC, { addressIndex }).address
}
