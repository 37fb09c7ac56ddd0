/** A server of LI.FI's `/v1/status` that answers what a test wants. Good answers have LI.FI's own types. */
import type { ServerResponse } from 'node:http'
import type { ExtendedTransactionInfo, FullStatusData } from '@lifi/types'
import { serveLocally } from '../../demo/network/local-server.ts'

export interface StatusServer {
  readonly url: string
  /** The hashes that it was asked for, in order. */
  readonly asked: string[]
  behave(behaviour: (txHash: string, response: ServerResponse) => void): void
  stop(): Promise<void>
}

export async function startStatusServer(): Promise<StatusServer> {
  const asked: string[] = []
  let behave: (txHash: string, response: ServerResponse) => void = (_, response) => answer(response, 404, NOT_FOUND)
  const { url, stop } = await serveLocally((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    const txHash = searchParams.get('txHash') ?? ''
    if (pathname !== '/v1/status') return answer(response, 404, { message: 'no such path' })
    asked.push(txHash)
    behave(txHash, response)
  })
  return {
    url,
    asked,
    behave: (changed) => {
      behave = changed
    },
    stop,
  }
}

export const NOT_FOUND = { message: 'Transaction hash not found', code: 1003 }

export function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** Both ends of a transfer. Chain ids are EIP-155 numbers. */
export interface Ends {
  sending: { chainId: number; txHash: string }
  receiving: { chainId: number; txHash: string }
  fromAddress: string
}

/** A transfer that has come to its end, as LI.FI says it. */
export function done({ sending, receiving, fromAddress }: Ends): FullStatusData {
  const gasToken = { chainId: sending.chainId, address: '0x0', symbol: 'ETH', decimals: 18, name: 'ETH', priceUSD: '1' }
  const info = (end: Ends['sending']): ExtendedTransactionInfo => ({
    ...end,
    txLink: '',
    gasPrice: '1',
    gasUsed: '1',
    gasToken,
    gasAmount: '1',
    gasAmountUSD: '0',
  })
  return {
    transactionId: '0x1',
    sending: info(sending),
    receiving: info(receiving),
    feeCosts: [],
    lifiExplorerLink: '',
    fromAddress,
    toAddress: fromAddress,
    tool: 'across',
    status: 'DONE',
    substatus: 'COMPLETED',
    metadata: { integrator: '' },
  }
}
