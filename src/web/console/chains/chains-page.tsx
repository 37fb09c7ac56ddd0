import { Page } from '../parts/page.tsx'

export function ChainsPage() {
  return <Page title="ChainsPage">…</Page>
}
