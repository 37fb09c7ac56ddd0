/** Coins and tokens for the accounts of a fresh demo chain, and the approvals that their payments need. */
import { type Address, getContractAddress, type Hex } from 'viem'
import type { DemoPeople } from '../history/people.ts'
import { assertSucceeded, type ChainClient } from './chain-client.ts'
import type { DemoChainSpec } from './chain-specs.ts'
import {
  type ContractCall,
  DELEGATED_CODE,
  DEMO_ACCOUNT_ADDRESS,
  encodeApprove,
  encodeCreation,
  encodeMint,
  MAX_UINT256,
} from './demo-contracts.ts'
import type { Deployed } from './deployment.ts'
import { toQuantity } from './rpc.ts'

const COIN = 10n ** 18n
/** In whole units; more than a payer spends in years. */
const PAYER_TOKENS = 1_000_000_000n
const PAYER_COINS = 100_000_000n

/** Tokens to mint: plenty for payers, and for the wallets exactly what demo.json says. */
export function mintsForPeople(spec: DemoChainSpec, deployed: Deployed, people: DemoPeople): readonly ContractCall[] {
  const payers = [...people.payers, people.pendingPayer, people.spoofer, people.relayer]
  const forPayers = deployed.tokens.flatMap((token) =>
    payers.map((payer) => encodeMint(token.address, payer, PAYER_TOKENS * 10n ** BigInt(token.decimals))),
  )
  const forWallets = people.wallets.flatMap((wallet) => {
    const tokens = wallet.holds.find((holding) => holding.chain === spec.name)?.tokens ?? {}
    return deployed.tokens.flatMap((token) => {
      const whole = tokens[token.symbol]
      return whole === undefined
        ? []
        : [encodeMint(token.address, wallet.address, BigInt(whole) * 10n ** BigInt(token.decimals))]
    })
  })
  return [...forPayers, ...forWallets]
}

/** Sets everybody's balances, and approves the proxies to pull the payers' tokens. Mines one block. */
export async function supplyPeople(
  client: ChainClient,
  spec: DemoChainSpec,
  deployed: Deployed,
  people: DemoPeople,
): Promise<void> {
  const setCoins = (address: Address, wei: bigint): Promise<unknown> =>
    client.rpc.call('anvil_setBalance', [address, toQuantity(wei)])
  const { deployer, pendingPayer, spoofer, relayer, payers } = people
  for (const payer of [deployer, pendingPayer, spoofer, relayer, ...payers]) {
    await setCoins(payer, PAYER_COINS * COIN)
  }
  for (const recipient of [people.feeCollector, ...people.payees]) await setCoins(recipient, 0n)
  for (const wallet of people.wallets) {
    const coins = wallet.holds.find((holding) => holding.chain === spec.name)?.coins ?? 0
    await setCoins(wallet.address, BigInt(coins) * COIN)
  }

  await delegateWallets(client, people)

  const hashes: Hex[] = []
  for (const payer of [...people.payers, people.pendingPayer]) {
    for (const token of deployed.tokens) {
      for (const proxy of [deployed.contracts.erc20FeeProxy, deployed.contracts.erc20ConversionProxy]) {
        hashes.push(await client.send(payer, encodeApprove(token.address, proxy, MAX_UINT256)))
      }
    }
  }
  if (deployed.bridge) {
    for (const token of deployed.tokens) {
      hashes.push(await client.send(relayer, encodeApprove(token.address, deployed.bridge.executor, MAX_UINT256)))
    }
  }
  hashes.push(...(await prepareSpoofer(client, deployed, people.spoofer)))
  await client.mine({ baseFeePerGas: spec.baseFeePerGas })
  for (const hash of hashes) await assertSucceeded(client, hash)
}

/** Gives wallets that make batches the account that carries them out. The node puts it there, as a signed delegation would. */
async function delegateWallets({ rpc }: ChainClient, { wallets }: DemoPeople): Promise<void> {
  // What creation code returns is the code that is stored.
  const code = await rpc.call('eth_call', [{ data: encodeCreation('DemoAccount') }, 'latest'])
  await rpc.call('anvil_setCode', [DEMO_ACCOUNT_ADDRESS, code])
  for (const { address, batches } of wallets) {
    if (batches === true) await rpc.call('anvil_setCode', [address, DELEGATED_CODE])
  }
}

/** The spoofer's first transactions: a worthless token with the symbol USDC, and the proxy's approval to pull it. */
async function prepareSpoofer(client: ChainClient, deployed: Deployed, spoofer: Address): Promise<Hex[]> {
  const { erc20FeeProxy } = deployed.contracts
  const worthless = worthlessToken(spoofer)
  const real = deployed.tokens.find((token) => token.symbol === 'USDC')
  const calls = [
    { data: encodeCreation('DemoToken', ['USD Coin', 'USDC', 6]) },
    encodeMint(worthless, spoofer, PAYER_TOKENS),
    encodeApprove(worthless, erc20FeeProxy, MAX_UINT256),
    ...(real ? [encodeApprove(real.address, erc20FeeProxy, MAX_UINT256)] : []),
  ]
  const hashes: Hex[] = []
  for (const [nonce, call] of calls.entries()) {
    hashes.push(await client.send(spoofer, call, { nonce, gas: 2_000_000n }))
  }
  return hashes
}

/** The address of the spoofer's "USDC". */
export function worthlessToken(spoofer: Address): Address {
  return getContractAddress({ from: spoofer, nonce: 0n })
}
