/** Support for tests of detection: the configuration of a test chain, accounts, and requests as the service stores them. */
import type { Knex } from 'knex'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import { createDetection, type Detection, type DetectionOptions } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import { readStoredDecimal } from '../../src/domain/decimal.ts'
import { bytesToHex } from '../../src/domain/hex.ts'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import type { TestChain } from './chains/chain.ts'
import { balanceText } from './data/ledger.ts'
import { silentLogger } from './logs.ts'
import { canonical } from './routing.ts'

export { canonical }

/** The configuration of a test chain for detection, with finality at a depth of 3 by default. */
export function configOf(chain: TestChain, name: string, options: Partial<ChainConfig> = {}): ChainConfig {
  const { contracts, native } = chain
  const hour = 3_600
  return {
    name,
    chainId: chain.chainId,
    rpcUrls: [chain.rpcUrl],
    multicall: canonical(contracts.multicall3),
    native: { symbol: native.symbol, decimals: 18, usdFeed: canonical(native.feed), heartbeatSeconds: hour },
    tokens: Object.values(chain.tokens).map(({ symbol, address, decimals, feed }) => ({
      symbol,
      address: canonical(address),
      decimals,
      ...(symbol === 'USDT' ? { pegUsd: '1' } : { usdFeed: canonical(feed), heartbeatSeconds: hour }),
    })),
    contracts: [
      { kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: canonical(contracts.erc20FeeProxy), fromBlock: 0 },
      { kind: 'ETHEREUM_FEE_PROXY', version: '0.2.0', address: canonical(contracts.ethereumFeeProxy), fromBlock: 0 },
      {
        kind: 'ERC20_CONVERSION_PROXY',
        version: '0.1.2',
        address: canonical(contracts.erc20ConversionProxy),
        fromBlock: 0,
      },
      {
        kind: 'ETH_CONVERSION_PROXY',
        version: '0.2.1',
        address: canonical(contracts.ethConversionProxy),
        fromBlock: 0,
      },
    ],
    conversion: {
      path: canonical(contracts.conversionPath),
      paths: [native, ...Object.values(chain.tokens)].map(({ symbol }) => ({
        from: 'USD',
        token: symbol,
        via: [],
        heartbeatSeconds: hour,
      })),
    },
    startBlock: 0,
    finality: { useFinalizedTag: false, depth: 3 },
    blockTimeSeconds: 2,
    ...options,
  }
}

/** Creates a detection on a database; nothing runs until `start` or `scanOnce`. */
export function detect(
  knex: Knex,
  configs: readonly ChainConfig[],
  options: Partial<DetectionOptions> = {},
): Detection {
  return createDetection({
    knex,
    chains: createChainDirectory(configs),
    tokens: createTokenDirectory(configs),
    logger: silentLogger,
    clock: () => new Date(),
    ...options,
  })
}

/** Stores a new account. */
export async function addAccount(knex: Knex, name: string): Promise<Account> {
  const [row] = await knex('accounts').insert({ name }).returning<{ id: number }[]>('id')
  if (row === undefined) throw new Error('the account was not stored')
  return { id: row.id, name }
}

let requestsMade = 0

/** Terms of a request, with the amount as text. */
export type TestTerms = Partial<Omit<PaymentRequest, 'amount'>> & { readonly amount?: string }

/** Makes a request with a new reference; by default of 100 USDC on `network`. */
export function makeRequest(terms: TestTerms & Pick<PaymentRequest, 'payee' | 'network'>): PaymentRequest {
  requestsMade++
  const requestId = terms.requestId ?? `01${requestsMade.toString(16).padStart(64, '0')}`
  const salt = terms.salt ?? bytesToHex(crypto.getRandomValues(new Uint8Array(8))).slice(2)
  const paymentCurrency = terms.paymentCurrency ?? `USDC-${terms.network}`
  return {
    paymentCurrency,
    invoiceCurrency: paymentCurrency,
    createdAt: new Date(),
    ...terms,
    amount: readStoredDecimal(terms.amount ?? '100'),
    requestId,
    salt,
    paymentReference: terms.paymentReference ?? paymentReferenceOf(requestId, salt, terms.payee),
  }
}

/** Stores requests as the service does. */
export async function storeRequest(knex: Knex, account: Account, request: PaymentRequest): Promise<PaymentRequest> {
  return createRequestRepository(knex).insert(account, request)
}

/** The balance of a stored request; amounts as text. */
export async function balanceOf(knex: Knex, account: Account, request: PaymentRequest) {
  const found = await createRequestRepository(knex).findById(account, request.requestId)
  if (found === undefined) throw new Error('the request is not stored')
  return balanceText(found.balance)
}

/** The stored payments of a request, oldest first, with the names of statuses and types, and hashes and addresses as text. */
export async function paymentsOf(knex: Knex, account: Account, request: PaymentRequest) {
  const rows = await knex('payments')
    .where({ account_id: account.id, request_id: Buffer.from(request.requestId, 'hex') })
    .orderBy(['block_number', 'event_index', 'id'])
  return rows.map((row) => ({
    ...row,
    status: ['', 'PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED', 'FAILED'][row.status],
    type: ['', 'DIRECT', 'CONVERSION', 'CROSSCHAIN', 'RECURRING'][row.type],
    txHash: row.tx_hash && bytesToHex(row.tx_hash),
    payer: row.payer && `0x${row.payer.toString('hex').slice(2)}`,
    payee: row.payee && `0x${row.payee.toString('hex').slice(2)}`,
    initiator: row.initiator && `0x${row.initiator.toString('hex').slice(2)}`,
  }))
}

/** The reasons of the unmatched events of an account; 0 for events of no account. */
export async function unmatchedOf(knex: Knex, accountId: number): Promise<string[]> {
  return knex('unmatched_events').where({ account_id: accountId }).orderBy('block_number').pluck('reason')
}
