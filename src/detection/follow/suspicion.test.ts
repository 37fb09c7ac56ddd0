import { describe, expect, it } from 'vitest'
import { RpcError } from '../../nodes/rpc-error.ts'
import {
  decideFailure,
  isContradictionOfNode,
  isReplacementCertain,
  NO_SUSPICION,
  noteReplacement,
  type Suspicion,
} from './next-step.ts'
import { ChainMovedError } from './read-events.ts'

describe('after a failed scan', () => {
  const moved = new ChainMovedError('no receipt')
  it.each<[string, error: unknown, before: number, doubtsNode: boolean, retries: boolean, after: number]>([
    ['the chain moved: look again', moved, 0, false, true, 1],
    ['the chain moved again: look again', moved, 1, false, true, 2],
    ['the third time in a row it is the node', moved, 2, true, true, 3],
    ['then it has time to catch up', moved, 3, false, true, 4],
    ['and is doubted again after three more', moved, 5, true, true, 6],
    ['a node that refuses is doubted', new RpcError('REFUSED', 'no'), 1, true, false, 1],
    ['a node that does not answer is doubted', new RpcError('UNREACHABLE', 'gone'), 0, true, false, 0],
    ['a node of another chain is doubted', new RpcError('WRONG_CHAIN', 'other'), 0, true, false, 0],
    ['what is too large is so for every node', new RpcError('TOO_LARGE', 'wide'), 2, false, false, 2],
    ['the database says nothing about a node', new Error('connection terminated'), 2, false, false, 2],
  ])('%s', (_, error, before, doubtsNode, retries, after) => {
    const decision = decideFailure(error, { contradictions: before })
    expect(decision).toEqual({ doubtsNode, retries, suspicion: { contradictions: after } })
  })

  it('a node is not doubted before it contradicted anything', () => {
    expect(isContradictionOfNode(NO_SUSPICION)).toBe(false)
  })
})

describe('a final block that was replaced', () => {
  const said = (...nodes: number[]): Suspicion =>
    nodes.reduce((suspicion, node) => noteReplacement(suspicion, 99_000, node), noteReplacement(NO_SUSPICION, 1_000))

  it.each<[string, Suspicion, nodes: number, nowMs: number, isCertain: boolean]>([
    ['was not reported', NO_SUSPICION, 1, 1_000, false],
    ['is not certain before a node was asked again', said(), 1, 1_000, false],
    ['is certain when the only node says so again', said(0), 1, 1_000, true],
    ['is not certain while another node may say otherwise', said(0), 2, 1_000, false],
    ['is not made certain by one node twice', said(0, 0), 2, 1_000, false],
    ['is certain when all nodes say so', said(0, 1), 2, 1_000, true],
    ['is not certain while a silent node has a minute to answer', said(0), 2, 60_999, false],
    ['is certain after a silent node had a minute', said(0), 2, 61_000, true],
  ])('%s', (_, suspicion, nodes, nowMs, isCertain) => {
    expect(isReplacementCertain(suspicion, { nodes, nowMs })).toBe(isCertain)
  })
})
