import { mnemonicToAccount } from 'viem/accounts'
import type { ChainConfig } from '../chains/chains-file.ts'
import type { DemoFileChain } from './demo-file.ts'
import { DEMO_MNEMONIC, DEPLOYER_PLACE, RELAYER_PLACE } from './history/people.ts'
import { describeChain } from './network/chain-config.ts'
import { DEMO_CHAINS } from './network/chain-specs.ts'
import { planDeployment } from './network/deployment.ts'

/** No node answers here: the ports of the demo's nodes are drawn at each start. */
const NO_NODE = 'http://127.0.0.1:1'

/**
 * The chains of the demo in the words of a chains file.
 *
 * @param nodes - of a demo that runs; without them for those who need names and tokens but ask no node
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
