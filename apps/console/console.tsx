import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { Component, type ComponentType, lazy, type ReactNode, StrictMode, Suspense, useEffect, useRef } from 'react'
import { createRoot } from 'react-dom/client'
import { consoleTexts } from '../shared/texts.ts'
import { Announcer } from './parts/announcer.tsx'
import { AwayBanner, useAlive } from './parts/away.tsx'
import { Button } from './parts/fields.tsx'
import { Link } from './parts/link.tsx'
import { type Location, lastPlace, useLocation } from './parts/location.ts'
import { Empty, Waiting } from './parts/notices.tsx'
import { Page } from './parts/page.tsx'
import { SessionGate, useSession } from './parts/signed-in.tsx'
import { PaymentsPage } from './payments/payments-page.tsx'

/** The code of a page did not come. React keeps this answer, so that only a reload helps. */
class NotLoadedError extends Error {
  override readonly name = 'NotLoadedError'
}

const loaded = <P extends object>(load: () => Promise<ComponentType<P>>) =>
  lazy(async () => {
    const page = await load().catch((cause: unknown) => {
      throw new NotLoadedError('a page could not be loaded', { cause })
    })
    return { default: page }
  })

// Payments are what most people open; the other pages load when they are asked for.
const PaymentPage = loaded(async () => (await import('./payment/payment-page.tsx')).PaymentPage)
const RequestsPage = loaded(async () => (await import('./requests/requests-page.tsx')).RequestsPage)
const RequestPage = loaded(async () => (await import('./requests/request-page.tsx')).RequestPage)
const NewRequestPage = loaded(async () => (await import('./requests/new-request-page.tsx')).NewRequestPage)
const WhyPage = loaded(async () => (await import('./why/why-page.tsx')).WhyPage)
const ChainsPage = loaded(async () => (await import('./chains/chains-page.tsx')).ChainsPage)
const KeysPage = loaded(async () => (await import('./keys/keys-page.tsx')).KeysPage)
const WebhooksPage = loaded(async () => (await import('./webhooks/webhooks-page.tsx')).WebhooksPage)

const queries = new QueryClient({
  defaultOptions: {
    // The client tries again by itself, and says when that is of no use.
    queries: { retry: false, staleTime: 5_000, refetchOnWindowFocus: true },
    mutations: { retry: false },
  },
})

function Console() {
  return (
    <Guard>
      <QueryClientProvider client={queries}>
        <SessionGate>
          <Frame />
        </SessionGate>
      </QueryClientProvider>
    </Guard>
  )
}

function Frame() {
  const location = useLocation()
  return (
    <div className="frame">
      <a className="unseen" href="#main">
        {consoleTexts.skip}
      </a>
      <Navigation path={location.path} />
      <Guard key={location.path}>
        <Suspense fallback={<Waiting lines={8} />}>{pageOf(location)}</Suspense>
      </Guard>
      <AwayBanner />
      <Announcer />
    </div>
  )
}

function pageOf({ path }: Location): ReactNode {
  const [section = '', id] = path.slice(1).split('/').map(decodeURIComponent)
  if (section === 'payments' && id === undefined) return <PaymentsPage />
  if (section === 'payments' && id !== undefined) return <PaymentPage key={id} id={id} />
  if (section === 'requests' && id === 'new') return <NewRequestPage />
  if (section === 'requests' && id !== undefined) return <RequestPage key={id} paymentReference={id} />
  if (section === 'requests') return <RequestsPage />
  if (section === 'why') return <WhyPage />
  if (section === 'chains') return <ChainsPage />
  if (section === 'webhooks') return <WebhooksPage />
  if (section === 'keys') return <KeysPage />
  return (
    <Page title={consoleTexts.notFound.title}>
      <Empty title={consoleTexts.notFound.says}>
        <Link to="/payments">{consoleTexts.nav.payments}</Link>
      </Empty>
    </Page>
  )
}

function Navigation({ path }: { path: string }) {
  const { isDemo, leave } = useSession()
  const { nav, demo } = consoleTexts
  const menu = useRef<HTMLElement>(null)
  // On a narrow screen the menu is wider than its place.
  useEffect(() => {
    const here = menu.current?.querySelector<HTMLElement>('[aria-current]')
    if (here) menu.current?.scrollTo({ left: here.offsetLeft - here.offsetWidth / 2 })
  }, [path])
  return (
    <header className="top row apart gap-wide">
      <Link to="/payments" className="brand">
        Waybill
      </Link>
      <nav ref={menu} className="row gap-1" aria-label={nav.label}>
        {(['payments', 'requests', 'why', 'chains', 'webhooks', 'keys'] as const).map((section) => (
          <Link
            key={section}
            to={section === 'payments' ? lastPlace(section) : `/${section}`}
            aria-current={path.startsWith(`/${section}`) ? 'page' : undefined}
          >
            {nav[section]}
          </Link>
        ))}
        <a href="/docs">{nav.docs}</a>
      </nav>
      {isDemo ? (
        <span className="badge warn" title={demo.says}>
          {demo.title}
        </span>
      ) : (
        <Button text={nav.leave} kind="plain" onClick={() => leave()} />
      )}
    </header>
  )
}

/** Shows what went wrong in the page itself, where a blank page would be left. */
class Guard extends Component<{ readonly children: ReactNode }, { readonly error?: Error }> {
  override state: { readonly error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    const { reload, page, notLoaded } = consoleTexts.errors
    const isLoaded = !(error instanceof NotLoadedError)
    const { title, says } = isLoaded ? page : notLoaded
    return (
      <main className="page stack" id="main">
        <div role="alert">
          <h1>{title}</h1>
          <p>{says}</p>
          {isLoaded ? <p className="mono quiet">{error.message}</p> : <ReloadOnReturn />}
        </div>
        <div className="row">
          <Button text={reload} kind="main" onClick={() => globalThis.location.reload()} />
          <Button text={page.back} onClick={() => history.back()} />
        </div>
      </main>
    )
  }
}

function ReloadOnReturn() {
  useAlive(() => globalThis.location.reload())
  return null
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <Console />
  </StrictMode>,
)
