import type { UnavailableRoute } from '@waybill/client'
import { sentence } from '../../shared/sentence.ts'
import { whyTexts } from '../../shared/texts.ts'
import { Link } from '../parts/link.tsx'
import { searchOf } from '../parts/location.ts'
import { byUse } from './say-verdict.ts'
import type { Question } from './stream-routes.ts'

interface MissingListProps {
  readonly question: Question
  readonly unavailable: readonly UnavailableRoute[]
}

/** Every way that is none, by chain, with what would change that. */
export function MissingList({ question, unavailable }: MissingListProps) {
  const byChain = Map.groupBy(unavailable, ({ chain }) => chain ?? whyTexts.missing.elsewhere)
  return (
    <section aria-labelledby="missing" className="stack gap-3">
      <h2 id="missing">{whyTexts.missing.title}</h2>
      {[...byChain].map(([chain, entries]) => (
        <section key={chain} className="why-chain" aria-label={chain}>
          <header>
            <h3>{chain}</h3>
            <span className="quiet small">{whyTexts.missing.count(entries.length)}</span>
          </header>
          <ul>
            {byUse(entries).map((entry) => (
              <Missing key={`${entry.token} ${entry.provider} ${entry.reason}`} entry={entry} question={question} />
            ))}
          </ul>
        </section>
      ))}
    </section>
  )
}

function Missing({ entry, question }: { entry: UnavailableRoute; question: Question }) {
  const { missing } = whyTexts
  const { chain, token, provider, message, remedy, reason } = entry
  return (
    <li>
      <div>
        <strong>{token ?? missing.whole}</strong>
        {provider !== undefined && <span className="quiet small line">{missing.through(provider)}</span>}
      </div>
      <p>
        {sentence(message)} <span className="quiet why-reason">{reason}</span>
      </p>
      <p>
        {reason === 'CROSSCHAIN_NOT_ASKED' && token !== undefined && chain !== undefined ? (
          <Link to={`/why${searchOf(narrowed(question, chain, token))}`}>
            {missing.askFor(whyTexts.on(token, chain))}
          </Link>
        ) : (
          sentence(remedy)
        )}
      </p>
    </li>
  )
}

function narrowed({ paymentReference, wallet }: Question, chain: string, token: string): URLSearchParams {
  return new URLSearchParams({ request: paymentReference, wallet, tokens: token, chains: chain })
}
