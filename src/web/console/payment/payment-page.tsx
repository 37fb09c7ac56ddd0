import { Page } from '../parts/page.tsx'

export function PaymentPage({ id }: { id: string }) {
  return <Page title="Payment">{id}</Page>
}
