import { whyTexts } from '../../shared/texts.ts'
import { Link } from '../parts/link.tsx'
import { searchOf } from '../parts/location.ts'
import { useDemoWallets, useOpenRequests } from './suggestions.ts'

/** What the wallets of the demo say fits its oldest request in this currency. */
const CURRENCY = 'USDC-ETHEREUM'

/** In a demo: each of its wallets with an open request, to be tried with a click. */
export function Examples() {
  const wallets = useDemoWallets()
  const requests = useOpenRequests()
  const request = requests.findLast(({ currency }) => currency === CURRENCY) ?? requests[0]
  if (request === undefined || wallets.length === 0) return null
  return (
    <section aria-labelledby="examples" className="stack gap-3">
      <h2 id="examples">{whyTexts.examples(request.money)}</h2>
      <ul className="why-examples">
        {wallets.map(({ value, name, says }) => (
          <li key={value}>
            <Link to={`/why${searchOf(new URLSearchParams({ request: request.value, wallet: value }))}`}>{name}</Link>
            <span>{says}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
