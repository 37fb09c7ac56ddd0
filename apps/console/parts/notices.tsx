/** What is shown instead of an answer: waiting, nothing found, an error, each with what to do next. */
import type { UseQueryResult } from '@tanstack/react-query'
import { WaybillCallError } from '@waybill/client'
import { type ReactNode, useEffect, useRef } from 'react'
import { sentence } from '../../shared/sentence.ts'
import { consoleTexts } from '../../shared/texts.ts'
import { Button } from './fields.tsx'
import { missingScope, ScopeNotice } from './scope-notice.tsx'
import { Copyable, CopyButton } from './shown-values.tsx'
import { useSession } from './signed-in.tsx'

/**
 * Why a call failed, in the service's words, and what can be done: for a key without the scope, how to get one. A key that is no longer valid ends
 * the session.
 */
export function ErrorNotice({ error, onRetry }: { error: Error; onRetry?: (() => void) | undefined }) {
  const { leave } = useSession()
  const { title, retry, requestId, keyRefused, away } = consoleTexts.errors
  const isKeyWrong = error instanceof WaybillCallError && error.code === 'unauthenticated'
  useEffect(() => {
    if (isKeyWrong) leave(keyRefused)
  }, [isKeyWrong, leave, keyRefused])
  const call = error instanceof WaybillCallError ? error : undefined
  const scope = missingScope(error)
  if (scope !== undefined) return <ScopeNotice scope={scope} />
  return (
    <div className="notice bad" role="alert">
      <h2>{title}</h2>
      <p>{call?.reason === 'NETWORK' ? away : sentence(error.message)}</p>
      {call?.fieldViolations
        .filter(({ description }) => !call.message.includes(description))
        .map(({ field, description }) => (
          <p key={field + description}>
            <span className="mono">{field}</span>: {sentence(description)}
          </p>
        ))}
      {call?.requestId !== undefined && (
        <p className="quiet small">
          {requestId} <span className="mono">{call.requestId}</span>
        </p>
      )}
      {onRetry !== undefined && <Button text={retry} onClick={onRetry} />}
    </div>
  )
}

interface ShownOnceProps {
  readonly title: string
  readonly says: string
  readonly value: string
  readonly children?: ReactNode
}

/** A secret that is shown once; it gets the focus, since it is gone when the page is left. */
export function ShownOnce({ title, says, value, children }: ShownOnceProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [value])
  return (
    <div className="notice good stack gap-2">
      <h2 ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <p>{says}</p>
      <div className="row">
        <Copyable value={value} whole />
        <CopyButton text={consoleTexts.values.copy} value={value} />
      </div>
      {children}
    </div>
  )
}

/** Whether no answer came, or one that says that the service cannot answer now. */
function isAway(error: unknown): boolean {
  return error instanceof WaybillCallError && (error.reason === 'NETWORK' || error.code === 'unavailable')
}

type Asked<T> = Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>

interface AnswerProps<T> {
  readonly query: Asked<T>
  /** How high it is while it is awaited. */
  readonly lines: number
  readonly children: (data: T) => ReactNode
}

/** What a query has answered; before, that it is awaited, or why it failed. */
export function Answer<T>({ query, lines, children }: AnswerProps<T>) {
  if (hasFailed(query)) return <Failure query={query} />
  return query.data === undefined ? <Waiting lines={lines} /> : children(query.data)
}

/** Whether a query has nothing to show. While the service is away an earlier answer stays, since the frame says how old it is. */
export const hasFailed = ({ data, error }: Asked<unknown>) => error !== null && (data === undefined || !isAway(error))

interface FailureProps {
  readonly query: Asked<unknown>
  /** It stands beside a list, which says what is wrong with the key or the filters. */
  readonly isBeside?: boolean
}

export function Failure({ query: { error, refetch }, isBeside = false }: FailureProps) {
  const isSaid = isBeside && error instanceof WaybillCallError && SAID_BESIDE.includes(error.code)
  return error === null || isSaid ? null : <ErrorNotice error={error} onRetry={() => void refetch()} />
}

const SAID_BESIDE = ['invalid_argument', 'permission_denied', 'unauthenticated']

export function isNotFound(error: unknown): boolean {
  return error instanceof WaybillCallError && error.code === 'not_found'
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty stack gap-2">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Keeps the place of what is being loaded, so that nothing jumps when it comes. */
export function Waiting({ lines = 1 }: { lines?: number }) {
  return (
    <div className="stack gap-3" role="status">
      <span className="unseen">{consoleTexts.waiting}</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} className="waiting-line" aria-hidden="true" />
      ))}
    </div>
  )
}
