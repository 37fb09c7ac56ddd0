import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Chain, type UnmatchedEvent, UnmatchedEvent_Acceptance, UnmatchedEvent_Reason } from '@waybill/client'
import { formatAmount, symbolOf } from '../../shared/format-amount.ts'
import { chainsTexts } from '../../shared/texts.ts'
import { Facts, Paging } from '../parts/blocks.tsx'
import { Choice } from '../parts/fields.tsx'
import { Link } from '../parts/link.tsx'
import { navigate, placeOf, useLocation } from '../parts/location.ts'
import { Answer, Empty } from '../parts/notices.tsx'
import { missingScope } from '../parts/scope-notice.tsx'
import { Amount, Badge, Copyable, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'

const texts = chainsTexts.unmatched
const reasons = Object.values(UnmatchedEvent_Reason).filter(
  (reason): reason is UnmatchedEvent_Reason =>
    typeof reason === 'number' && reason !== UnmatchedEvent_Reason.REASON_UNSPECIFIED,
)
const nameOf = (reason: UnmatchedEvent_Reason) => UnmatchedEvent_Reason[reason] as keyof typeof texts.reasons

export function UnmatchedList({ chains }: { chains: readonly Chain[] }) {
  const { query } = useLocation()
  const found = useUnmatched(query, chains)
  return (
    <section className="stack unmatched" aria-labelledby="unmatched">
      <header>
        <h2 id="unmatched" tabIndex={-1}>
          {texts.title}
        </h2>
        <p className="quiet">{texts.lead}</p>
      </header>
      {missingScope(found.error) === undefined && (
        <Filters query={query} networks={chains.map(({ network }) => network)} />
      )}
      <Answer query={found} lines={6}>
        {({ events, pagination }) => (
          <>
            {events.length === 0 && <NoEvents query={query} />}
            <ol className="stack">
              {events.map((event) => (
                <Event
                  key={`${event.network} ${event.txHash} ${event.eventIndex} ${event.contract}`}
                  event={event}
                  chain={chains.find(({ network }) => network === event.network)}
                />
              ))}
            </ol>
            <Paging pagination={pagination} />
          </>
        )}
      </Answer>
    </section>
  )
}

/** Asked for again when the number of events changes. */
function useUnmatched(query: URLSearchParams, chains: readonly Chain[]) {
  const waybill = useWaybill()
  const network = query.get('network')
  const reason = reasons.find((known) => nameOf(known) === query.get('reason'))
  const cursor = query.get('cursor')
  const count = chains.reduce(
    (sum, { backlog }) => sum + (backlog?.unmatched.reduce((total, { events }) => total + events, 0) ?? 0),
    0,
  )
  return useQuery({
    queryKey: ['unmatched', network, reason, cursor, count],
    queryFn: ({ signal }) =>
      waybill.listUnmatchedEvents(
        cursor !== null
          ? { cursor }
          : {
              ...(network !== null && { network: [network] }),
              ...(reason !== undefined && { reason: [reason] }),
            },
        { signal },
      ),
    placeholderData: keepPreviousData,
  })
}

function Filters({ query, networks }: { query: URLSearchParams; networks: readonly string[] }) {
  const choice = (name: 'network' | 'reason', known: readonly (readonly [string, string])[]) => {
    const value = query.get(name) ?? ''
    // A link may name what this page does not know.
    const isUnknown = value !== '' && known.every(([each]) => each !== value)
    const options = [['', texts.all] as const, ...(isUnknown ? [[value, value] as const] : []), ...known]
    const choose = (chosen: string) => navigate(placeOf('/chains', { cursor: '', [name]: chosen }, query))
    return <Choice label={texts[name]} value={value} options={options} onChoose={choose} />
  }
  return (
    <div className="row gap-3">
      {choice(
        'network',
        networks.map((network) => [network, network]),
      )}
      {choice(
        'reason',
        reasons.map((reason) => [nameOf(reason), texts.reasons[nameOf(reason)]]),
      )}
    </div>
  )
}

function NoEvents({ query }: { query: URLSearchParams }) {
  const isFiltered = query.has('network') || query.has('reason') || query.has('cursor')
  return (
    <Empty title={texts.none}>
      <p>{isFiltered ? texts.noneFiltered : texts.noneSays}</p>
      {isFiltered && <Link to="/chains">{texts.clear}</Link>}
    </Empty>
  )
}

function Event({ event, chain }: { event: UnmatchedEvent; chain: Chain | undefined }) {
  const linkOf = (address: string | undefined) =>
    address === undefined ? undefined : chain?.explorer?.address.replace('{address}', address)
  const transactionLink = chain?.explorer?.transaction.replace('{hash}', event.txHash)
  const isUnknownToken = event.currency === undefined && event.tokenAddress !== undefined
  return (
    <li className="card stack gap-2">
      <header className="row gap-3">
        <h3>{texts.reasons[nameOf(event.reason)]}</h3>
        <Paid event={event} />
        <span className="quiet">{event.network}</span>
        <span className="quiet small">
          <Time at={event.timestamp} />
        </span>
        <Badge tone="quiet">{nameOf(event.reason)}</Badge>
      </header>
      <p>{event.explanation}</p>
      <p>
        <strong>{texts.do}</strong> {event.remedy}
      </p>
      <Facts
        className="row gap-wide"
        facts={[
          [texts.account, event.account ?? texts.nobody],
          [texts.transaction, <Copyable value={event.txHash} link={transactionLink} />],
          [texts.payer, <Copyable value={event.payer} link={linkOf(event.payer)} />],
          [texts.payee, <Copyable value={event.payee} link={linkOf(event.payee)} />],
          [texts.contract, <Copyable value={event.contract} link={linkOf(event.contract)} />],
          isUnknownToken
            ? [texts.token, <Copyable value={event.tokenAddress} link={linkOf(event.tokenAddress)} />]
            : undefined,
        ]}
      />
      {event.acceptableAs !== undefined && <Acceptance event={event} as={event.acceptableAs} />}
    </li>
  )
}

function Paid({ event: { amount, currency, amountBaseUnits } }: { event: UnmatchedEvent }) {
  if (amount === undefined || currency === undefined) {
    return (
      <span className="number">
        {formatAmount(amountBaseUnits)} <span className="quiet small">{texts.baseUnits}</span>
      </span>
    )
  }
  return <Amount value={amount} currency={symbolOf(currency)} />
}

function Acceptance({ event, as }: { event: UnmatchedEvent; as: UnmatchedEvent_Acceptance }) {
  const name = UnmatchedEvent_Acceptance[as] as keyof typeof texts.accept
  const { network, txHash, eventIndex, account = 'ACCOUNT' } = event
  const command = `npm run -s waybill -- unmatched accept --chain ${network} --tx ${txHash} --event ${eventIndex} --account ${account} --as ${name.toLowerCase()} --reason '${texts.acceptReason}'`
  return (
    <details>
      <summary>{texts.accept[name]}</summary>
      <Copyable value={command} whole />
    </details>
  )
}
