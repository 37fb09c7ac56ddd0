import { Page } from '../parts/page.tsx'

export function NewRequestPage() {
  return <Page title="NewRequestPage">…</Page>
}
