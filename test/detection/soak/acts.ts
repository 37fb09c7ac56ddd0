/** The transactions of the soak, kind by kind, each with the payment events that it causes. */
import { type Address, encodeFunctionData, type Hex, parseAbi, zeroAddress } from 'viem'
import { encodePayment } from '../../../demo/history/planned-payment.ts'
import {
  type ContractCall,
  encodeApprove,
  encodeErc20Payment,
  encodeMint,
  encodeNativePayment,
  MAX_UINT256,
} from '../../../demo/network/demo-contracts.ts'
import { convertFiat, encodeBatch } from '../../support/chains/contract-calls.ts'
import { COIN, type Fact } from '../model/expected-state.ts'
import { castOf, type Invoice, lower, tokenOf } from './invoices.ts'
import type { Act, IntendedEvent, SoakChain } from './soak-chain.ts'

const ABI = parseAbi([
  'function transferFrom(address from, address to, uint256 value)',
  'function transfer(address to, uint256 value)',
  'function batchERC20PaymentsWithReference(address token, address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function batchEthPaymentsWithReference(address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function swapTransferWithReference(address paymentProxy, address to, uint256 amount, uint256 amountInMax, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 deadline)',
  'function createERC20SingleRequestProxy(address payee, address token, bytes paymentReference, address feeAddress, uint256 feeAmount)',
  'function createEthereumSingleRequestProxy(address payee, bytes paymentReference, address feeAddress, uint256 feeAmount)',
  'function triggerERC20Payment()',
])

const FOREVER = 2n ** 40n

/** Money on its way: what one payment event moves. */
interface Move {
  readonly invoice: Invoice
  readonly from: Address
  readonly to?: Address
  readonly amount: bigint
  readonly reference?: Hex
  /** The token's symbol, where it is not the invoice's. */
  readonly symbol?: string
}

/** The fact of a direct payment. */
function factOf(chain: SoakChain, { invoice, from, to = invoice.payee, amount, reference, symbol }: Move): Fact {
  const token = symbol === undefined ? invoice.token : tokenOf(chain, symbol)
  return {
    about: invoice.reference,
    reference: reference ?? invoice.reference,
    to: lower(to),
    token: lower(token.address ?? COIN),
    // This token burns a hundredth of each transfer.
    received: token.symbol === 'TAX' ? amount - amount / 100n : amount,
    paidFrom: lower(from),
    isPassedOn: false,
    payer: lower(from),
    payerNeedsTrace: false,
  }
}

const seen = (fact: Fact): IntendedEvent => ({ fact })
/** An event of a contract that is not followed. */
const unseen: IntendedEvent = { fact: undefined }

function directCall(chain: SoakChain, move: Move, fee = 0n, proxy?: Address): ContractCall {
  const { invoice, amount, to = invoice.payee, reference: paymentReference = invoice.reference } = move
  const token = move.symbol === undefined ? invoice.token : tokenOf(chain, move.symbol)
  const { erc20FeeProxy, ethereumFeeProxy } = chain.deployed.contracts
  const feeAddress = fee > 0n ? castOf(chain.accounts).feeTaker : zeroAddress
  const terms = { to, amount, paymentReference, feeAmount: fee, feeAddress }
  return token.address === undefined
    ? encodeNativePayment(proxy ?? ethereumFeeProxy, terms, true)
    : encodeErc20Payment(proxy ?? erc20FeeProxy, token.address, terms)
}

/** A payment from a wallet through a fee proxy. */
export function payDirectly(chain: SoakChain, move: Move, { fee = 0n, kind = 'direct' } = {}): Act {
  return { kind, from: move.from, call: directCall(chain, move, fee), events: [seen(factOf(chain, move))] }
}

/** Pays coins by the older function, which pays out all that was sent except the fee. */
export function payCoinsByOlderFunction(chain: SoakChain, move: Move): Act {
  const { to = move.invoice.payee, amount } = move
  const terms = { to, amount, paymentReference: move.invoice.reference }
  const call = encodeNativePayment(chain.deployed.contracts.ethereumFeeProxy, terms, false)
  return { kind: 'native-older', from: move.from, call, events: [seen(factOf(chain, move))] }
}

/** @param move - its amount in US dollars, with 8 decimals */
export async function payByConversion(chain: SoakChain, move: Move): Promise<Act> {
  const { invoice, from, amount } = move
  const into = invoice.token.address ?? chain.deployed.native.conversionHash
  const received = await convertFiat(chain.client, chain.deployed, { amount, into })
  const terms = { to: invoice.payee, amount, paymentReference: invoice.reference, maxToSpend: received * 2n }
  const call = encodePayment(
    chain.deployed,
    invoice.token.address === undefined
      ? { kind: 'NATIVE_CONVERSION', ...terms }
      : { kind: 'ERC20_CONVERSION', token: invoice.token.address, ...terms },
  )
  const fact = { ...factOf(chain, { ...move, amount: received }), dollars: amount }
  return { kind: 'conversion', from, call, events: [seen(fact)] }
}

/** Pays several invoices of one token, or of coins, through Request's batch. */
export function payByBatch(chain: SoakChain, moves: readonly Move[]): Act {
  const [first] = moves
  if (first === undefined) throw new RangeError('an empty batch')
  const token = first.invoice.token.address
  const recipients = moves.map(({ invoice }) => invoice.payee)
  const amounts = moves.map(({ amount }) => amount)
  const references = moves.map(({ invoice }) => invoice.reference)
  const fees = moves.map(() => 0n)
  const data =
    token === undefined
      ? encodeFunctionData({
          abi: ABI,
          functionName: 'batchEthPaymentsWithReference',
          args: [recipients, amounts, references, fees, zeroAddress],
        })
      : encodeFunctionData({
          abi: ABI,
          functionName: 'batchERC20PaymentsWithReference',
          args: [token, recipients, amounts, references, fees, zeroAddress],
        })
  const value = token === undefined ? amounts.reduce((total, amount) => total + amount, 0n) : 0n
  const events = moves.map((move) =>
    seen({
      ...factOf(chain, move),
      paidFrom: lower(chain.more.batch),
      isPassedOn: true,
      payerNeedsTrace: token === undefined,
    }),
  )
  return { kind: 'batch', from: first.from, call: { to: chain.more.batch, data, value }, events }
}

/** Pays in USDC with DAI, through ERC20SwapToPay. */
export function payBySwap(chain: SoakChain, move: Move): Act {
  const { swapToPay } = exchangeOf(chain)
  const events = [seen({ ...factOf(chain, move), paidFrom: lower(swapToPay), isPassedOn: true })]
  return { kind: 'swap', from: move.from, call: swapCall(chain, move), events }
}

function exchangeOf({ deployed }: SoakChain) {
  if (deployed.exchange === undefined) throw new Error('the chain has no exchange')
  return deployed.exchange
}

function swapCall(chain: SoakChain, { invoice, amount, to = invoice.payee }: Move): ContractCall {
  const [dai, usdc] = [tokenOf(chain, 'DAI').address, tokenOf(chain, 'USDC').address] as [Address, Address]
  const most = 2n * amount * 10n ** 12n
  const data = encodeFunctionData({
    abi: ABI,
    functionName: 'swapTransferWithReference',
    args: [
      chain.deployed.contracts.erc20FeeProxy,
      to,
      amount,
      most,
      [dai, usdc],
      invoice.reference,
      0n,
      zeroAddress,
      FOREVER,
    ],
  })
  return { to: exchangeOf(chain).swapToPay, data }
}

/** The wallet contract that makes several calls in one transaction; anybody may use it, and what it holds. */
const wallet = (chain: SoakChain) => chain.deployed.contracts.paymentBatch

/** What the wallet contract pays in one transaction. Its events are those of the moves, in their order. */
export function payTogether(chain: SoakChain, moves: readonly Move[], from: Address): Act {
  const calls: ContractCall[] = []
  const events: IntendedEvent[] = []
  for (const move of moves) {
    calls.push(directCall(chain, move))
    const isCoins = move.invoice.token.address === undefined
    events.push(seen({ ...factOf(chain, { ...move, from: wallet(chain) }), payerNeedsTrace: isCoins }))
  }
  // Before all others, an event of a contract that is not followed, so that indexes do not depend on the configuration.
  const [first] = moves
  if (first !== undefined && first.invoice.token.address !== undefined) {
    calls.unshift(directCall(chain, { ...first, amount: 1n }, 0n, chain.more.unlisted))
    events.unshift(unseen)
  }
  return { kind: 'together', from, call: encodeBatch(wallet(chain), calls), events }
}

/** A swap by the wallet contract, after a Transfer of 0 in a victim's name. The victim must not become the payer. */
export function swapInVictimsName(chain: SoakChain, move: Move): Act {
  const { swapToPay } = exchangeOf(chain)
  const dai = tokenOf(chain, 'DAI').address as Address
  const { victim } = castOf(chain.accounts)
  const zero = encodeFunctionData({ abi: ABI, functionName: 'transferFrom', args: [victim, swapToPay, 0n] })
  const calls = [{ to: dai, data: zero }, swapCall(chain, move)]
  const fact = { ...factOf(chain, { ...move, from: wallet(chain) }), paidFrom: lower(swapToPay), isPassedOn: true }
  return { kind: 'zero-transfer', from: move.from, call: encodeBatch(wallet(chain), calls), events: [seen(fact)] }
}

/** Creates the SingleRequestProxy of an invoice. */
export function createRequestProxy(chain: SoakChain, { token, payee, reference }: Invoice, from: Address): Act {
  const data =
    token.address === undefined
      ? encodeFunctionData({
          abi: ABI,
          functionName: 'createEthereumSingleRequestProxy',
          args: [payee, reference, zeroAddress, 0n],
        })
      : encodeFunctionData({
          abi: ABI,
          functionName: 'createERC20SingleRequestProxy',
          args: [payee, token.address, reference, zeroAddress, 0n],
        })
  return { kind: 'create-proxy', from, call: { to: chain.more.factory, data }, events: [] }
}

/** Coins to a SingleRequestProxy, which pays at once. */
export function payCoinsToProxy(chain: SoakChain, move: Move, proxy: Address): Act {
  const fact = { ...factOf(chain, move), paidFrom: lower(proxy), isPassedOn: true, payerNeedsTrace: true }
  return {
    kind: 'request-proxy',
    from: move.from,
    call: { to: proxy, data: '0x', value: move.amount },
    events: [seen(fact)],
  }
}

/** Tokens to a SingleRequestProxy in one transaction with its payment: the payer is known. */
export function payTokensThroughProxy(chain: SoakChain, move: Move, proxy: Address): Act {
  const token = move.invoice.token.address as Address
  const put = encodeFunctionData({ abi: ABI, functionName: 'transferFrom', args: [move.from, proxy, move.amount] })
  const calls = [{ to: token, data: put }, triggerCall(proxy)]
  const fact = { ...factOf(chain, move), paidFrom: lower(proxy), isPassedOn: true }
  return { kind: 'request-proxy', from: move.from, call: encodeBatch(wallet(chain), calls), events: [seen(fact)] }
}

const triggerCall = (proxy: Address): ContractCall => ({
  to: proxy,
  data: encodeFunctionData({ abi: ABI, functionName: 'triggerERC20Payment', args: [] }),
})

/** Tokens to a SingleRequestProxy, and its payment in a later transaction: the payer stays unknown. */
export function payTokensToProxy(chain: SoakChain, move: Move, proxy: Address): readonly [Act, Act] {
  const to = move.invoice.token.address as Address
  const data = encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [proxy, move.amount] })
  const fact = { ...factOf(chain, move), paidFrom: lower(proxy), isPassedOn: true, payer: undefined }
  return [
    { kind: 'fill-proxy', from: move.from, call: { to, data }, events: [] },
    { kind: 'request-proxy', from: move.from, call: triggerCall(proxy), events: [seen(fact)] },
  ]
}

/** An event of a look-alike, or of a real proxy that the chains file does not list. */
export function payElsewhere(chain: SoakChain, move: Move, proxy: 'lookAlike' | 'unlisted'): Act {
  return { kind: proxy, from: move.from, call: directCall(chain, move, 0n, chain.more[proxy]), events: [unseen] }
}

/** A worthless token that has the right name. */
export function payFakeToken(chain: SoakChain, move: Move): Act {
  const { payee: to, reference: paymentReference } = move.invoice
  const terms = { to, amount: move.amount, paymentReference }
  const call = encodeErc20Payment(chain.deployed.contracts.erc20FeeProxy, chain.more.fake, terms)
  const fact = { ...factOf(chain, move), token: lower(chain.more.fake), received: move.amount }
  return { kind: 'fake-token', from: move.from, call, events: [seen(fact)] }
}

/** What gives everybody enough tokens and lets the contracts take them. */
export function setUpMoney(chain: SoakChain): readonly { from: Address; call: ContractCall }[] {
  const { payers, merchants, hotWallet, attacker } = castOf(chain.accounts)
  const { erc20FeeProxy, erc20ConversionProxy, paymentBatch } = chain.deployed.contracts
  const deployer = chain.accounts[0] as Address
  const holders = [...payers, ...merchants, hotWallet, attacker]
  const tokens = chain.deployed.tokens.map(({ address, decimals }) => ({ address, much: 10n ** BigInt(decimals + 9) }))
  const fake = { address: chain.more.fake, much: 10n ** 15n }
  const mints = [...tokens, fake].flatMap(({ address, much }) =>
    [...holders, paymentBatch].map((holder) => ({ from: deployer, call: encodeMint(address, holder, much) })),
  )
  const [usdc, dai] = ['USDC', 'DAI'].map((symbol) => tokenOf(chain, symbol).address as Address)
  const takers = [
    ...[...tokens, fake].map(({ address }) => ({ address, spender: erc20FeeProxy })),
    ...tokens.map(({ address }) => ({ address, spender: chain.more.unlisted })),
    ...[usdc, dai].flatMap((address) => [
      { address, spender: erc20ConversionProxy },
      { address, spender: chain.more.batch },
      { address, spender: paymentBatch },
      { address, spender: exchangeOf(chain).swapToPay },
    ]),
  ]
  const approvals = holders.flatMap((from) =>
    takers
      .filter(({ spender }) => spender === erc20FeeProxy || payers.includes(from) || from === attacker)
      .map(({ address, spender }) => ({ from, call: encodeApprove(address as Address, spender, MAX_UINT256) })),
  )
  const ofWallet = [erc20FeeProxy, chain.more.unlisted, exchangeOf(chain).swapToPay].flatMap((spender) =>
    [...tokens, fake].map(({ address }) => encodeApprove(address, spender, MAX_UINT256)),
  )
  const coins = { to: paymentBatch, data: '0x', value: 10n ** 21n } as const
  return [
    ...mints,
    ...approvals,
    { from: deployer, call: encodeBatch(paymentBatch, ofWallet) },
    { from: deployer, call: coins },
  ]
}
