/** Coins and tokens for the accounts of a fresh demo chain, and the approvals that their payments need. */
import type { Address } from 'viem'
import { assertAllSucceeded, type ChainClient, type Sending } from './chain-client.ts'
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
import type { DemoPeople } from './people.ts'
import { toQuantity } from './rpc.ts'

const COIN = 10n ** 18n
/** In whole units; more than a payer spends in years. */
const PAYER_TOKENS = 1_000_000_000n
const PAYER_COINS = 100_000_000n

/** Tokens to mint: plenty for payers, and for the wallets exactly what demo.json says. */
export function mintsForPeople(spec: DemoChainSpec, deployed: Deployed, people: DemoPeople): readonly ContractCall[] {
  const payers = [...people.payers, people.spoofer, people.relayer]
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
  const { deployer, spoofer, relayer, payers, wallets } = people
  const coinsOf = (wallet: DemoPeople['wallets'][number]) =>
    wallet.holds.find((holding) => holding.chain === spec.name)?.coins ?? 0
  const balances: readonly (readonly [Address, bigint])[] = [
    ...[deployer, spoofer, relayer, ...payers].map((payer) => [payer, PAYER_COINS * COIN] as const),
    ...[people.feeCollector, ...people.payees].map((recipient) => [recipient, 0n] as const),
    ...wallets.map((wallet) => [wallet.address, BigInt(coinsOf(wallet)) * COIN] as const),
  ]
  await client.rpc.callAll(balances.map(([address, wei]) => ['anvil_setBalance', [address, toQuantity(wei)]]))
  await delegateWallets(client, people)
  const hashes = await client.sendAll(approvalsOf(deployed, people))
  await client.mine({ baseFeePerGas: spec.baseFeePerGas })
  await assertAllSucceeded(client, hashes)
}

/** The first transactions of the payers, the spoofer and the relayer. */
function approvalsOf({ tokens, contracts, bridge }: Deployed, people: DemoPeople): readonly Sending[] {
  const approve = (from: Address, spenders: readonly Address[]): Sending[] =>
    tokens
      .flatMap(({ address }) => spenders.map((spender) => encodeApprove(address, spender, MAX_UINT256)))
      .map((call, nonce) => ({ from, call, options: { nonce } }))
  const proxies = [contracts.erc20FeeProxy, contracts.erc20ConversionProxy]
  return [
    ...[...people.payers, people.spoofer].flatMap((payer) => approve(payer, proxies)),
    ...(bridge === undefined ? [] : approve(people.relayer, [bridge.executor])),
  ]
}

/** Gives wallets that make batches the account that carries them out. The node puts it there, as a signed delegation would. */
async function delegateWallets({ rpc }: ChainClient, { wallets }: DemoPeople): Promise<void> {
  // What creation code returns is the code that is stored.
  const code = await rpc.call('eth_call', [{ data: encodeCreation('DemoAccount') }, 'latest'])
  await rpc.callAll([
    ['anvil_setCode', [DEMO_ACCOUNT_ADDRESS, code]],
    ...wallets
      .filter(({ batches }) => batches === true)
      .map(({ address }) => ['anvil_setCode', [address, DELEGATED_CODE]] as const),
  ])
}
