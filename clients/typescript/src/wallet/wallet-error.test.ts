import { describe, expect, it } from 'vitest'
import { NoAnswerError } from './provider.ts'
import { isNoBatch, isUnknownChain, judgeWalletError, type WalletStep } from './wallet-error.ts'

type End = 'REFUSED' | 'FAILED' | 'UNKNOWN'

/** How the payment ends with this error where the wallet was asked for it. Before that, UNKNOWN is FAILED. */
const atPayment: readonly (readonly [name: string, error: unknown, end: End])[] = [
  // The payer said no.
  ['4001', { code: 4001 }, 'REFUSED'],
  ['4001 as text', { code: '4001' }, 'REFUSED'],
  ['4001 alone', 4001, 'REFUSED'],
  ['4001 alone as text', '4001', 'REFUSED'],
  ['4001 as JSON', '{"code":4001,"message":"no"}', 'REFUSED'],
  ['4001 as JSON in a message', new Error('Wallet: {"code":4001,"message":"no"}'), 'REFUSED'],
  ['4001 as the cause', { code: -1, cause: { cause: { code: 4001 } } }, 'REFUSED'],
  ['4001 as the original error', { code: -32603, data: { originalError: { code: 4001 } } }, 'REFUSED'],
  ['4001 in error.error', { error: { error: { code: 4001 } } }, 'REFUSED'],
  ['4001 in a list', { errors: [{ code: 4001 }] }, 'REFUSED'],
  ['5000 of WalletConnect', { code: 5000, message: 'User rejected.' }, 'REFUSED'],
  ['5000 without words', { code: 5000 }, 'REFUSED'],
  ['5001', { code: 5001, message: 'User rejected chains.' }, 'REFUSED'],
  ['5002', { code: 5002 }, 'REFUSED'],
  ['5003', { code: 5003 }, 'REFUSED'],
  ['ethers 5', { code: 'ACTION_REJECTED', reason: 'user rejected transaction' }, 'REFUSED'],
  ['ethers 6', { code: 'ACTION_REJECTED', info: { error: { code: 4001 } } }, 'REFUSED'],
  ['viem', { name: 'UserRejectedRequestError', shortMessage: 'User rejected the request.' }, 'REFUSED'],
  ['words beside -32603', { code: -32603, message: 'User rejected the request' }, 'REFUSED'],
  ['words beside -32000', { code: -32000, message: 'User rejected the transaction' }, 'REFUSED'],
  ['words in data', { code: -32603, message: 'Internal JSON-RPC error.', data: 'User denied' }, 'REFUSED'],
  ['MetaMask', new Error('MetaMask Tx Signature: User denied transaction signature.'), 'REFUSED'],
  ...[
    'User rejected',
    'user denied',
    'rejected by user',
    'Rejected by the user.',
    'Transaction was denied by the user',
    'cancelled',
    'Canceled',
    'User canceled the request',
    'user cancel',
    'Transaction cancelled',
    'The request was rejected.',
    'Request rejected',
    'Error: Transaction declined',
    'USER_REFUSED_OP',
    'User disapproved requested methods',
    'User declined',
    'User closed modal',
    'Popup closed',
    'Popup closed by user',
    'User did not approve',
    'Ledger device: Condition of use not satisfied (denied by the user?) (0x6985)',
  ].map((words) => [`“${words}”`, new Error(words), 'REFUSED'] as const),
  ['words alone, as a string', 'User rejected', 'REFUSED'],
  ['words as the message of no error', { message: 'User denied' }, 'REFUSED'],
  // Nothing was sent.
  ['4100', { code: 4100, message: 'The account has not been authorized by the user.' }, 'FAILED'],
  ['4200', { code: 4200 }, 'FAILED'],
  ['4900', { code: 4900, message: 'The provider is disconnected from all chains.' }, 'FAILED'],
  ['4901', { code: 4901, message: 'The provider is disconnected from the chain.' }, 'FAILED'],
  ['4902', { code: 4902 }, 'FAILED'],
  ['-32600', { code: -32600 }, 'FAILED'],
  ['-32601', { code: -32601 }, 'FAILED'],
  ['-32602', { code: -32602 }, 'FAILED'],
  ['-32000', { code: -32000, message: 'insufficient funds for gas * price + value' }, 'FAILED'],
  ['-32000 as text', { code: '-32000', message: 'insufficient funds' }, 'FAILED'],
  ['-32000 within -32603', { code: -32603, data: { code: -32000, message: 'insufficient funds' } }, 'FAILED'],
  ['-32001', { code: -32001 }, 'FAILED'],
  ['-32002', { code: -32002, message: 'Request of type eth_sendTransaction already pending' }, 'FAILED'],
  ['-32003', { code: -32003, message: 'insufficient funds' }, 'FAILED'],
  ['-32003 without words', { code: -32003 }, 'FAILED'],
  ['-32004', { code: -32004 }, 'FAILED'],
  ['-32005', { code: -32005, message: 'limit exceeded' }, 'FAILED'],
  ['-32010', { code: -32010, message: 'insufficient funds' }, 'FAILED'],
  ['3', { code: 3, message: 'execution reverted: ERC20: transfer amount exceeds balance' }, 'FAILED'],
  ['5100', { code: 5100, message: 'Unsupported chains.' }, 'FAILED'],
  ['5700', { code: 5700 }, 'FAILED'],
  ['5740', { code: 5740 }, 'FAILED'],
  ['5750 although it is a refusal', { code: 5750, message: 'User rejected the upgrade' }, 'FAILED'],
  ['5760', { code: 5760 }, 'FAILED'],
  ['ethers 6, too poor', { code: 'INSUFFICIENT_FUNDS', shortMessage: 'insufficient funds' }, 'FAILED'],
  ['words beside -32603', { code: -32603, message: 'gas required exceeds allowance (0)' }, 'FAILED'],
  ...[
    'insufficient funds for gas * price + value',
    'Ledger device: Locked device (0x5515)',
    'LockedDeviceError',
    'Wallet is locked',
    'nonce too low',
    'tx fee (1.2 ether) exceeds the configured cap (1.00 ether)',
    'max priority fee per gas higher than max fee per gas',
    'replacement transaction underpriced',
    'max fee per gas less than block base fee',
    'execution reverted',
    'Request of type wallet_requestPermissions already pending for origin. Please wait.',
    'Please call connect() before request()',
    'the method eth_sendTransaction does not exist',
    'Please enable Blind signing in the Ethereum app',
  ].map((words) => [`“${words}”`, new Error(words), 'FAILED'] as const),
  // Nothing tells.
  ['-32603', { code: -32603 }, 'UNKNOWN'],
  ['-32603 that says nothing', { code: -32603, message: 'Internal JSON-RPC error.' }, 'UNKNOWN'],
  ['-32603 with words of nobody', { code: -32603, message: 'Something went wrong' }, 'UNKNOWN'],
  ['-32000 without words', { code: -32000 }, 'UNKNOWN'],
  ['-32000 that was sent before', { code: -32000, message: 'already known' }, 'UNKNOWN'],
  ['-32010 that was sent before', { code: -32010, message: 'transaction already imported' }, 'UNKNOWN'],
  ['-32000 of a slow node', { code: -32000, message: 'context deadline exceeded' }, 'UNKNOWN'],
  ['-32002 of geth', { code: -32002, message: 'request timed out' }, 'UNKNOWN'],
  ['5720', { code: 5720 }, 'UNKNOWN'],
  ['5730', { code: 5730 }, 'UNKNOWN'],
  ['a code that nobody knows', { code: 9999 }, 'UNKNOWN'],
  ['undefined', undefined, 'UNKNOWN'],
  ['null', null, 'UNKNOWN'],
  ['nothing in an error', new Error(), 'UNKNOWN'],
  ['an empty string', '', 'UNKNOWN'],
  ['an object without anything', {}, 'UNKNOWN'],
  ['no answer', new NoAnswerError('eth_sendTransaction', 1_000), 'UNKNOWN'],
  ...[
    'Failed to fetch',
    'timeout of 30000ms exceeded',
    'Request timed out',
    'socket hang up',
    'connection closed',
    'The user closed the connection',
    'Lost connection to the wallet',
    'Disconnected from MetaMask background',
    'The operation was aborted.',
    'Request expired. Please try again.',
    'status code 502',
    'network error',
    'oops',
  ].map((words) => [`“${words}”`, new Error(words), 'UNKNOWN'] as const),
]

const before: readonly WalletStep[] = ['CONNECT', 'SWITCH_CHAIN', 'APPROVE', 'SWAP']

describe.each(atPayment)('%s', (_, error, end) => {
  it(`ends as ${end} at the payment`, () => {
    expect(judgeWalletError(error, 'PAY').outcome).toBe(end)
  })

  it.each(before)('is never unknown at %s', (step) => {
    expect(judgeWalletError(error, step).outcome).toBe(end === 'UNKNOWN' ? 'FAILED' : end)
  })

  it('says nothing about a batch that the wallet has taken', () => {
    expect(judgeWalletError(error, 'STATUS')).toMatchObject({ outcome: 'UNKNOWN', reason: 'BATCH_LOST' })
  })
})

it.each([
  ['PAY', 'WALLET_ERROR', 'NO_ANSWER'],
  ['APPROVE', 'WALLET_ERROR', 'NO_ANSWER'],
  ['SWAP', 'WALLET_ERROR', 'NO_ANSWER'],
  ['CONNECT', 'WALLET_ERROR', 'NO_ANSWER'],
  ['SWITCH_CHAIN', 'WRONG_CHAIN', 'WRONG_CHAIN'],
] as const)('the reason at %s is %s, and without an answer %s', (step, reason, silent) => {
  expect(judgeWalletError(new Error('oops'), step)).toMatchObject({ reason })
  expect(judgeWalletError(new NoAnswerError('eth_call', 10_000), step)).toMatchObject({ reason: silent })
})

it.each([
  ['a plain error', new Error('the device is locked'), 'the device is locked'],
  ['a string', 'the device is locked', 'the device is locked'],
  [
    'MetaMask around a node',
    { message: 'Internal JSON-RPC error.', data: { message: 'nonce too low' } },
    'nonce too low',
  ],
  ["viem's call, not shown", { shortMessage: 'RPC Request failed.', details: 'no', message: 'no\nURL: …' }, 'no'],
  ['ethers 6', { shortMessage: 'could not coalesce error', error: { message: 'no' } }, 'no'],
  ['JSON of a node', new Error('Internal JSON-RPC error.\n{"code":-32000,"message":"nonce too low"}'), 'nonce too low'],
  ['a long text', 'x'.repeat(400), `${'x'.repeat(300)}…`],
  ['no words', { code: -32603 }, 'the wallet gave no reason'],
  ['an error that says nothing', new Error(''), 'the wallet gave no reason'],
  ['nothing', undefined, 'the wallet gave no reason'],
  ['a number', 7, 'the wallet gave no reason'],
])('the words of %s', (_, error, message) => {
  expect(judgeWalletError(error, 'APPROVE')).toMatchObject({ message })
})

it.each([
  ['the outermost of several codes', { code: 5760, cause: { code: -32000 } }, 5760],
  ['the number within a library’s name', { code: 'UNKNOWN_ERROR', error: { code: -32603 } }, -32603],
  ['text alone', new Error('no'), undefined],
])('the code of %s', (_, error, code) => {
  expect(judgeWalletError(error, 'APPROVE')).toMatchObject({ code })
})

it('reads an error that is its own cause, one that throws when it is read, and one that is too deep', () => {
  const circle: { cause?: unknown } = {}
  circle.cause = circle
  const trap = {
    get message() {
      throw new Error('trap')
    },
    code: 4001,
  }
  let deep: object = { code: 4001 }
  for (let depth = 0; depth < 1_000; depth++) deep = { cause: deep }
  expect(judgeWalletError(circle, 'PAY').outcome).toBe('UNKNOWN')
  expect(judgeWalletError(trap, 'PAY').outcome).toBe('REFUSED')
  expect(judgeWalletError(deep, 'PAY').outcome).toBe('UNKNOWN')
})

it.each([
  [{ code: 4902 }, true],
  [{ code: '4902' }, true],
  [{ code: -32603, data: { originalError: { code: 4902 } } }, true],
  [new Error('Unrecognized chain ID "0x2105". Try adding the chain using wallet_addEthereumChain first.'), true],
  [{ code: 4001 }, false],
  [undefined, false],
])('%o says that the chain is unknown: %s', (error, isUnknown) => {
  expect(isUnknownChain(error)).toBe(isUnknown)
})

it.each([
  [{ code: 4200 }, true],
  [{ code: '-32601' }, true],
  [{ code: 5750, message: 'User rejected the upgrade' }, true],
  [{ code: 5760, cause: { code: -32000 } }, true],
  [{ code: 5760, cause: { code: 4001 } }, false],
  [{ code: -32603 }, false],
  [new Error('no'), false],
])('after %o the steps may be sent one by one: %s', (error, isSo) => {
  expect(isNoBatch(error)).toBe(isSo)
})
