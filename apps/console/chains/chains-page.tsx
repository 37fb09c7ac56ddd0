import { useQuery } from '@tanstack/react-query'
import type { Chain } from '@waybill/client'
import { chainsTexts } from '../../shared/texts.ts'
import { Answer } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { ChainCard } from './chain-card.tsx'
import { UnmatchedList } from './event-list.tsx'
import { judgeChains } from './judge-chain.ts'

const REFRESH_MS = 2_000

export function ChainsPage() {
  const waybill = useWaybill()
  const chains = useQuery({
    queryKey: ['chains'],
    // A call that fails is not tried again: the next refresh is near.
    queryFn: async ({ signal }) => (await waybill.listChains({}, { signal, retries: 0, timeoutMs: 10_000 })).chains,
    refetchInterval: ({ state }) => state.data !== undefined && REFRESH_MS,
    staleTime: REFRESH_MS,
  })
  return (
    <Page title={chainsTexts.title}>
      <div className="stack gap-5">
        <Answer query={chains} lines={10}>
          {(all) => (
            <>
              <Overall chains={all} at={new Date(chains.dataUpdatedAt)} />
              <div className="columns wide">
                {all.map((chain) => (
                  <ChainCard key={chain.network} chain={chain} />
                ))}
              </div>
            </>
          )}
        </Answer>
        {/* After what stands above, which would push it down. */}
        {!chains.isPending && <UnmatchedList chains={chains.data ?? []} />}
      </div>
    </Page>
  )
}

function Overall({ chains, at }: { chains: readonly Chain[]; at: Date }) {
  const { tone, title, says } = judgeChains(chains)
  return (
    <section className={`notice verdict tinted chains-overall row apart ${tone}`}>
      <div role="status">
        <h2>{title}</h2>
        <p>{says}</p>
      </div>
      <p className="small">
        {chainsTexts.refreshed} <Time at={at} />
      </p>
    </section>
  )
}
