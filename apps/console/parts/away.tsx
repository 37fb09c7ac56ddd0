import { type Query, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useState } from 'react'
import { formatTime } from '../../shared/format-time.ts'
import { consoleTexts } from '../../shared/texts.ts'

/** How often it is asked whether the service answers, while the page can be seen. */
const ASK_MS = 5_000

/** Of a query that a watch keeps current: its answer is as new as the service has been seen. */
export const watched = { isWatched: true }
/** Of a query whose answer is not about what is shown. */
export const aside = { isAside: true }

/** Asks all the while whether the service answers. @param onReturn - called when it does so again */
export function useAlive(onReturn: () => void) {
  const { isError, dataUpdatedAt } = useQuery({
    queryKey: ['alive'],
    queryFn: ({ signal }) => askWhetherReady(signal),
    refetchInterval: ASK_MS,
    staleTime: 0,
    // A browser that thinks it is offline is answered too.
    networkMode: 'always',
    meta: aside,
  })
  const [wasAway, setWasAway] = useState(false)
  const comeBack = useEffectEvent(onReturn)
  useEffect(() => {
    if (wasAway && !isError) comeBack()
    setWasAway(isError)
  }, [wasAway, isError])
  return { isError, dataUpdatedAt }
}

/** Says over whatever is scrolled that the service does not answer, and how old what is shown is. When it answers again, that is read again. */
export function AwayBanner() {
  const queries = useQueryClient()
  const { isError, dataUpdatedAt } = useAlive(() => {
    void queries.refetchQueries({ type: 'active', predicate: ({ meta }) => meta !== aside && meta !== watched })
  })
  if (!isError) return null
  const { title, asOf, again } = consoleTexts.away
  const ages = queries.getQueryCache().findAll({ type: 'active' }).flatMap(ageOf(dataUpdatedAt))
  return (
    <p className="away notice bad" role="alert">
      <strong>{title}</strong> {ages.length > 0 && asOf(formatTime(new Date(Math.min(...ages))))} {again}
    </p>
  )
}

/** When what a query shows was so, in milliseconds. */
const ageOf =
  (seenAt: number) =>
  ({ meta, state }: Query): number[] => {
    if (meta === aside || state.data === undefined) return []
    return [meta === watched ? Math.max(seenAt, state.dataUpdatedAt) : state.dataUpdatedAt]
  }

async function askWhetherReady(signal: AbortSignal): Promise<true> {
  const answer = await fetch('/readyz', { signal: AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]) })
  if (!answer.ok) throw new Error(`the service is not ready: ${answer.status}`)
  return true
}
