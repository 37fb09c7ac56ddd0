import { Page } from '../parts/page.tsx'

export function RequestsPage() {
  return <Page title="RequestsPage">…</Page>
}
