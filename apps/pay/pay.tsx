/** @jsxImportSource preact */
import { createCheckout } from '@waybill/client/checkout'
import { render } from 'preact'
import { payTexts } from '../shared/texts.ts'
import { Checkout } from './checkout-screen.tsx'
import { readLink } from './page-link.ts'
import { Problem } from './screen-parts.tsx'

const link = readLink(location)
document.title = payTexts.heading

const page =
  link.problem === undefined ? (
    <Checkout
      paymentReference={link.paymentReference}
      checkout={createCheckout({ baseUrl: location.origin, apiKey: link.apiKey })}
    />
  ) : (
    <Problem {...payTexts.problems[link.problem]} />
  )
render(page, document.getElementById('root') as HTMLElement)
