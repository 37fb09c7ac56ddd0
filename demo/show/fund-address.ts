import type { Address } from 'viem'
import { formatAmount } from '../../src/domain/decimal.ts'
import { encodeTransfer } from '../network/demo-contracts.ts'
import { SPOOFER_PLACE } from '../network/people.ts'
import { toQuantity } from '../network/rpc.ts'
import { type RunningDemo, readHolding, sendTransaction } from '../running-demo.ts'
import type { Say } from './show-payments.ts'

const WHOLE_TOKENS = 10_000n

/**
 * Gives an address tokens and coins on every chain, so that a wallet of one's own can pay, and reports what it then holds.
 *
 * @param coins - what it has of each native coin afterwards, in whole units; 0: it cannot pay for gas
 */
export async function fundAddress(
  demo: RunningDemo,
  { address, coins }: { readonly address: Address; readonly coins: bigint },
  { say, signal }: { say: Say; signal: AbortSignal },
): Promise<void> {
  const funded = demo.file.chains.map(async (chain) => {
    const rpc = demo.rpcOf(chain)
    await rpc.call('anvil_setBalance', [address, toQuantity(coins * 10n ** BigInt(chain.native.decimals))])
    const from = (await rpc.call<readonly Address[]>('eth_accounts'))[SPOOFER_PLACE] as Address
    // One after another: the node may give two at once the same nonce.
    for (const { address: token, decimals } of chain.tokens) {
      const { to, data } = encodeTransfer(token, address, WHOLE_TOKENS * 10n ** BigInt(decimals))
      await sendTransaction(rpc, { from, to, data, value: '0x0', chainId: toQuantity(chain.chainId) }, signal)
    }
    const symbols = [chain.native.symbol, ...chain.tokens.map(({ symbol }) => symbol)]
    const holdings = await Promise.all(symbols.map((symbol) => readHolding(rpc, chain, { owner: address, symbol })))
    return holdings.map(({ units, decimals }, place) => `${formatAmount(units, decimals)} ${symbols[place]}`)
  })
  for (const [place, holdings] of (await Promise.all(funded)).entries()) {
    const { name = '', chainId = 0, rpcUrl = '' } = demo.file.chains[place] ?? {}
    say(name, `chain id ${chainId}`, rpcUrl, ...holdings)
  }
}
