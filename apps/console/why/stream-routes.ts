import type { GetPaymentRoutesResponse, Route, UnavailableRoute } from '@waybill/client'
import { useCallback, useEffect, useState } from 'react'
import { useWaybill } from '../parts/signed-in.tsx'

/** What is asked; the link carries it. */
export interface Question {
  readonly paymentReference: string
  readonly wallet: string
  readonly chains: readonly string[]
  readonly tokens: readonly string[]
}

export interface RoutesState {
  readonly isAsking: boolean
  /** In the order in which they came, while the answer is not complete. */
  readonly routes: readonly Route[]
  readonly unavailable: readonly UnavailableRoute[]
  /** The last complete answer to this question. It stays while the question is asked again. */
  readonly answer?: GetPaymentRoutesResponse | undefined
  readonly answeredAt?: Date
  readonly error?: Error | undefined
}

const nothing: RoutesState = { isAsking: false, routes: [], unavailable: [] }

/** Streams the routes of a question. A new question drops the answer of the one before. */
export function useRoutes(question: Question | undefined): RoutesState & { readonly askAgain: () => void } {
  const waybill = useWaybill()
  const asked = question === undefined ? '' : JSON.stringify(question)
  const [round, setRound] = useState(0)
  const [state, setState] = useState<RoutesState & { readonly asked: string }>({ ...nothing, asked: '' })

  useEffect(() => {
    if (asked === '') return undefined
    const left = new AbortController()
    const { chains, tokens, ...rest } = JSON.parse(asked) as Question
    setState((last) => ({ ...(last.asked === asked ? last : nothing), asked, isAsking: true, error: undefined }))
    void (async () => {
      let found: Pick<RoutesState, 'routes' | 'unavailable'> = { routes: [], unavailable: [] }
      try {
        const events = waybill.streamPaymentRoutes(
          { ...rest, chains: [...chains], tokens: [...tokens] },
          { signal: left.signal },
        )
        for await (const { event } of events) {
          if (event.case === 'route' && event.value.route !== undefined)
            found = { ...found, routes: [...found.routes, event.value.route] }
          if (event.case === 'unavailable') found = { ...found, unavailable: [...found.unavailable, event.value] }
          const whole = event.case === 'answer' ? { answer: event.value, answeredAt: new Date() } : {}
          setState((last) => ({ ...last, ...found, ...whole }))
        }
        setState((last) => ({ ...last, isAsking: false }))
      } catch (error) {
        if (!left.signal.aborted) setState((last) => ({ ...last, isAsking: false, error: error as Error }))
      }
    })()
    return () => left.abort()
  }, [waybill, asked, round])

  const askAgain = useCallback(() => setRound((before) => before + 1), [])
  // The effect runs after the first picture of a new question.
  const shown = state.asked === asked ? state : { ...nothing, isAsking: asked !== '' }
  return { ...shown, askAgain }
}
