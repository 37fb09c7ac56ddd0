import { Page } from '../parts/page.tsx'

export function PaymentsPage() {
  return <Page title="Payments">…</Page>
}
