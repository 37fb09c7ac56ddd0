/** Shared by the scenes of remedies: wallets and routings that get a remedy, and the acts that follow it. */
import type { ChainConfig, PaymentContractKind } from '../../src/chains/chains-file.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { RoutesAnswer, RoutesQuestion } from '../../src/domain/route.ts'
import { type LifiBehaviour, quoteWell, sendJson } from '../support/lifi-server.ts'
import { type EvmAddress, passOn, type TestRouting } from '../support/routing.ts'
import { type Changes, type Next, type Scene, type Stage, stage } from './remedy-stage.ts'

const COIN = 10n ** 18n
const UNIT = 10n ** 6n
export const DIRECT = 'REQUEST_NETWORK_PAYMENT'
const CROSSCHAIN = 'BASE_ETHEREUM_USDT_USDC'

/** Splits a remedy into its parts; it must say exactly this. */
export function read(remedy: string, pattern: RegExp): string[] {
  const found = pattern.exec(remedy)
  if (found === null) throw new Error(`"${remedy}" does not say ${pattern}`)
  return found.slice(1)
}

export const idsOf = ({ routes }: RoutesAnswer) => routes.map(({ id }) => id)
export const entryOf = ({ unavailable }: RoutesAnswer, at: Scene['at']) =>
  unavailable.find((entry) => Object.entries(at).every(([name, value]) => entry[name as keyof typeof at] === value))

/** A wallet with USDC, and with whatever else the scene needs. */
async function walletWith(funds: Partial<Record<'USDC' | 'USDT' | 'DAI', bigint>> = {}): Promise<EvmAddress> {
  const wallet = await stage.newWallet()
  for (const [symbol, amount] of Object.entries(funds)) {
    await stage.near.fund(stage.near.tokens[symbol as 'USDC'], wallet, amount)
  }
  return wallet
}

export async function fundFar(wallet: EvmAddress, usdt: bigint): Promise<void> {
  await stage.far.fund(stage.far.tokens.USDT, wallet, usdt)
}

/** Funds the wallet as the remedy says, with tokens of the near chain or its coin. */
export async function add(wallet: EvmAddress, [amount = '', symbol = '']: readonly string[]): Promise<void> {
  const { near } = stage
  const units = (decimals: number) => parseAmount(amount, decimals) as bigint
  if (symbol === 'ETH') return near.setNativeBalance(wallet, (await near.nativeBalance(wallet)) + units(18))
  const token = near.tokens[symbol as 'USDC' | 'USDT' | 'DAI']
  await near.fund(token, wallet, units(token.decimals))
}

const PAY_WITH = / with ([\d.]+) (\w+) on ETHEREUM/

/** Funds the wallet with exactly as much payment currency as the remedy says. */
export const payingWith = (wallet: EvmAddress) => async (remedy: string) => {
  await add(wallet, read(remedy, PAY_WITH))
  return {}
}

/** A scene of a wallet on the near chain. */
export async function nearScene(
  token: string,
  scene: Partial<Scene> & { funds?: Parameters<typeof walletWith>[0]; terms?: object; near?: Changes; ask?: object } & {
    then: (scene: { wallet: EvmAddress; routing: TestRouting; question: RoutesQuestion }) => Scene['follow']
  },
): Promise<Scene> {
  const { funds, terms, near, then, ask, ...rest } = scene
  const wallet = await walletWith(funds)
  const routing = stage.open(near === undefined ? {} : { near })
  const question = { ...stage.ask(routing, wallet, terms), chains: ['ETHEREUM'], ...ask }
  const follow = then({ wallet, routing, question })
  return { routing, question, at: { token, chain: 'ETHEREUM' }, route: DIRECT, follow, ...rest }
}

/** Asks the question again in a routing configured as the remedy says. */
export function reopened(near: Changes, wallet: string, terms: object = {}): Next {
  const routing = stage.open({ near })
  return { routing, question: stage.ask(routing, wallet, terms) }
}

/** A scene of a wallet with tokens of the far chain, with a cross-chain provider. */
export async function crosschainScene(
  scene: Partial<Scene> & {
    usdt?: bigint
    terms?: object
    far?: Changes
    lifi?: object
    configs?: readonly ChainConfig[]
    then: (scene: { wallet: EvmAddress; routing: TestRouting; question: RoutesQuestion }) => Scene['follow']
  },
): Promise<Scene> {
  const { usdt = 1_000n * UNIT, terms, far, lifi = {}, configs, then, ...rest } = scene
  const wallet = await stage.newWallet()
  await fundFar(wallet, usdt)
  const routing = stage.open({ lifi, ...(far && { far }), ...(configs && { configs }) })
  const question = stage.ask(routing, wallet, terms)
  const follow = then({ wallet, routing, question })
  return { routing, question, at: { chain: 'BASE', token: 'USDT' }, route: CROSSCHAIN, follow, ...rest }
}

/** The cross-chain provider fails, and works again after the time that the remedy names. */
export const lifiErrs = (behaviour: LifiBehaviour, lifi: object = {}, words = /try again in (\d+) s$/) => {
  stage.lifi.behave(behaviour)
  return crosschainScene({
    lifi,
    then: () => (remedy) => {
      const [seconds] = read(remedy, words)
      stage.lifi.behave(quoteWell)
      stage.wait(Number(seconds ?? 10))
      return {}
    },
  })
}

const AGAIN = /^try again in (\d+) s/

export const noQuote: LifiBehaviour = ({ response }) => sendJson(response, 404, { message: 'none', code: 1002 })

/** The chain's node fails some questions, and works again after the time that the remedy names. */
export async function nodeErrs(
  behaviour: Parameters<Stage['proxy']['behave']>[0],
  { questions = 1, ...options }: { questions?: number; chainTimeoutMs?: number } = {},
): Promise<Scene> {
  const wallet = await walletWith({ USDC: 100n * UNIT })
  const routing = stage.open({ throughProxy: true, ...options })
  const question = stage.ask(routing, wallet)
  stage.proxy.behave(behaviour)
  for (let asked = 1; asked < questions; asked++) {
    const entry = entryOf(await routing.find(question), { chain: 'ETHEREUM' })
    stage.wait(Number(read(entry?.remedy ?? '', AGAIN)[0]))
  }
  const follow = (remedy: string) => {
    stage.proxy.behave(passOn)
    stage.wait(Number(read(remedy, AGAIN)[0]))
    return {}
  }
  return { routing, question, at: { chain: 'ETHEREUM' }, route: DIRECT, follow }
}

export const SWAPPED = { at: { provider: 'uniswap-v2', token: 'DAI' }, route: 'ETHEREUM_ETHEREUM_DAI_USDC' } as const
export const SWAPPED_V3 = {
  at: { provider: 'uniswap-v3', token: 'USDT' },
  route: 'ETHEREUM_ETHEREUM_USDT_USDC_UNISWAP_V3',
} as const
export const inFiat = (invoiceCurrency: string, amount = '100') => ({ invoiceCurrency, amount })
export const inCoins = { invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM', amount: '2' }

/** A configuration without a contract, which is then added as the remedy names it. */
export const withoutContract = (terms: object, at: string | undefined) => async () => {
  const { contracts } = stage.config()
  const funds = { USDC: 200n * UNIT }
  return nearScene(at ?? 'USDC', {
    funds,
    terms,
    near: { contracts: [] },
    then:
      ({ wallet }) =>
      async (remedy) => {
        const [kind] = read(remedy, /^configure (\w+) of ETHEREUM in the chains file$/) as [PaymentContractKind]
        await stage.near.setNativeBalance(wallet, 3n * COIN)
        return reopened({ contracts: contracts.filter((each) => each.kind === kind) }, wallet, terms)
      },
  })
}
