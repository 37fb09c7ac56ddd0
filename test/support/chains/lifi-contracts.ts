import type { Hex } from 'viem'
import { encodeCreation } from '../../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { canonical, type EvmAddress } from '../routing.ts'
import type { TestChain } from './chain.ts'

/** Doubles of LI.FI's contracts on a test chain. */
export interface TestLifi {
  readonly diamond: EvmAddress
  readonly feeForwarder: EvmAddress
  /** Receiver and executor in one. It pulls the delivered tokens from its caller. */
  readonly receiver: EvmAddress
}

/** Deploys the doubles on a chain. */
export async function deployLifi(chain: TestChain): Promise<TestLifi> {
  const create = async (data: Hex): Promise<EvmAddress> => {
    const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 5_000_000n })
    const receipt = await chain.client.rpc.call<{ contractAddress: Hex }>('eth_getTransactionReceipt', [
      transactionHash,
    ])
    return canonical(receipt.contractAddress)
  }
  return {
    diamond: await create(encodeCreation('LifiDouble')),
    feeForwarder: await create(encodeCreation('FeeForwarderDouble')),
    receiver: await create(encodeCreation('DemoExecutor', [chain.contracts.erc20FeeProxy])),
  }
}

/** The entries of a chains file that name them. */
export function lifiConfigOf({ diamond, feeForwarder, receiver }: TestLifi): Pick<ChainConfig, 'executors' | 'lifi'> {
  return {
    executors: [receiver],
    lifi: { diamond, feeContracts: [feeForwarder], receiverAcrossV4: receiver, executor: receiver },
  }
}
