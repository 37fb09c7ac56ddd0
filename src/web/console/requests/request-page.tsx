import { Page } from '../parts/page.tsx'

export function RequestPage({ paymentReference }: { paymentReference: string }) {
  return <Page title="Request">{paymentReference}</Page>
}
