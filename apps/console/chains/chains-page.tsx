import { useQuery } from '@tanstack/react-query'
import { type Chain, WaybillCallError } from '@waybill/client'
import { useRef } from 'react'
import { chainsTexts } from '../../shared/texts.ts'
import { ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { missingScope } from '../parts/scope-notice.tsx'
import { Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { ChainCard } from './chain-card.tsx'
import { UnmatchedList } from './event-list.tsx'
import { judgeChains } from './judge-chain.ts'

const REFRESH_MS = 2_000

export function ChainsPage() {
  const chains = useChains()
  const error = useLastError(chains)
  return (
    <Page title={chainsTexts.title}>
      <div className="stack gap-5">
        {chains.data === undefined ? (
          <NoChains error={error} onRetry={() => void chains.refetch()} />
        ) : (
          <>
            <Overall chains={chains.data} error={error} at={new Date(chains.dataUpdatedAt)} />
            <div className="chains-cards">
              {chains.data.map((chain) => (
                <ChainCard key={chain.network} chain={chain} />
              ))}
            </div>
          </>
        )}
        {/* After what stands above, which would push it down. */}
        {(chains.data !== undefined || error !== null) && <UnmatchedList chains={chains.data ?? []} />}
      </div>
    </Page>
  )
}

/** Asked for again while the page is visible. */
function useChains() {
  const waybill = useWaybill()
  return useQuery({
    queryKey: ['chains'],
    // A call that fails is not tried again: the next refresh is near.
    queryFn: async ({ signal }) => (await waybill.listChains({}, { signal, retries: 0, timeoutMs: 10_000 })).chains,
    refetchInterval: ({ state }) => (missingScope(state.error) === undefined ? REFRESH_MS : false),
    staleTime: REFRESH_MS,
  })
}

/** The error of the last refresh that has ended: the query forgets it whenever it asks again. */
function useLastError({ error, isFetching }: { readonly error: Error | null; readonly isFetching: boolean }) {
  const last = useRef<Error | null>(null)
  if (!isFetching) last.current = error
  return last.current
}

function NoChains({ error, onRetry }: { error: Error | null; onRetry: () => void }) {
  if (error === null) return <Waiting lines={10} />
  return <ErrorNotice error={error} onRetry={onRetry} />
}

function Overall({ chains, error, at }: { chains: readonly Chain[]; error: Error | null; at: Date }) {
  const { tone, title, says } = judgeChains(chains)
  return (
    <section className={`notice verdict chains-overall row gap-wide ${tone}`}>
      <div role="status">
        <h2>{title}</h2>
        <p>{says}</p>
      </div>
      <p className="small">
        {chainsTexts.refreshed} <Time at={at} />
        {error !== null && <strong className="wrong"> {chainsTexts.notRefreshed(whyFailed(error))}</strong>}
      </p>
    </section>
  )
}

function whyFailed(error: Error): string {
  return error instanceof WaybillCallError && error.reason === 'NETWORK' ? chainsTexts.away : error.message
}
