/** Payments of pages with the wallets of a running demo, without a browser. */
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem'
import { expect, vi } from 'vitest'
import { createWaybill, type PayOutcome, pay } from '../../clients/typescript/src/public.ts'
import type { DemoFile } from '../../demo/demo-file.ts'
import { demoWallet } from '../support/page-wallets.ts'
import { PATIENCE } from '../support/patience.ts'
import { freshAddress } from '../support/routing.ts'

const TOKEN = parseAbi(['function transfer(address to, uint256 amount)', 'function balanceOf(address owner)'])
/** For the chain's clock, which mines every second while something waits. */
const POLL_MS = 100

/** How a payment ended, and what became of its request. */
export interface TriedPayment {
  readonly outcome: PayOutcome['outcome']
  /** The kinds of progress, in order. */
  readonly progress: readonly string[]
  /** The hash of each payment that the service found. */
  readonly transactions: number
}

/** Pays a new request in USDC on ETHEREUM directly, by `pay` of the client. */
export async function payAsPage(file: DemoFile, name: string): Promise<TriedPayment> {
  const waybill = createWaybill({ baseUrl: file.baseUrl, apiKey: file.apiKey })
  const { paymentReference } = await waybill.createPaymentRequest({
    payee: freshAddress(`payee of ${name}`),
    amount: '7',
    invoiceCurrency: 'USDC-ETHEREUM',
    paymentCurrency: 'USDC-ETHEREUM',
  })
  const progress: string[] = []
  const end = await pay({
    waybill,
    paymentReference,
    provider: demoWallet(file.baseUrl, name),
    wallet: file.wallets[name]?.address ?? '',
    pollMs: POLL_MS,
    onProgress: ({ type }) => progress.push(type),
  })
  const transactions = 'transactionHashes' in end ? end.transactionHashes.length : 0
  await vi.waitFor(async () => {
    const { outstandingAmount } = await waybill.getPaymentRequest({ paymentReference })
    expect(outstandingAmount).toBe('0')
  }, PATIENCE)
  return { outcome: end.outcome, progress, transactions }
}

/** Sends a batch on ARBITRUM whose second call reverts. @returns how the wallet says it ended, and what the first call moved */
export async function sendRevertingBatch(file: DemoFile) {
  const wallet = demoWallet(file.baseUrl, 'batching')
  const { chainId: id, tokens } = file.chains.find(({ name }) => name === 'ARBITRUM') as DemoFile['chains'][number]
  const chainId = `0x${id.toString(16)}`
  const to = tokens.find(({ symbol }) => symbol === 'USDC')?.address as Address
  const receiver = freshAddress('receiver of a batch')
  const transfer = (amount: bigint) => ({
    to,
    data: encodeFunctionData({ abi: TOKEN, functionName: 'transfer', args: [receiver, amount] }),
  })
  await wallet.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
  const batch = { version: '2.0.0', from: file.wallets.batching?.address, chainId, atomicRequired: true }
  const calls = [transfer(1_000_000n), transfer(10n ** 30n)]
  const sent = (await wallet.request({ method: 'wallet_sendCalls', params: [{ ...batch, calls }] })) as { id: string }
  const readStatus = async () =>
    (await wallet.request({ method: 'wallet_getCallsStatus', params: [sent.id] })) as {
      readonly status: number
      readonly receipts: readonly { readonly status: Hex }[]
    }
  await vi.waitFor(async () => expect((await readStatus()).status).not.toBe(100), { ...PATIENCE, interval: POLL_MS })
  const { status, receipts } = await readStatus()
  const data = encodeFunctionData({ abi: TOKEN, functionName: 'balanceOf', args: [receiver] })
  const moved = BigInt((await wallet.request({ method: 'eth_call', params: [{ to, data }, 'latest'] })) as Hex)
  return { status, receipts: receipts.map((receipt) => receipt.status), moved }
}
