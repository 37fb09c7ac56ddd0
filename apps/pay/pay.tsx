/** @jsxImportSource preact */
import { createCheckout } from '@waybill/client/checkout'
import { render } from 'preact'
import { Checkout } from './checkout-screen.tsx'
import { showHeight } from './frame.ts'
import { payTexts, useLanguage } from './language.ts'
import { readLink } from './page-link.ts'
import { Problem } from './screen-parts.tsx'

await useLanguage()
const link = readLink(location)
document.title = payTexts.states.OPEN

const page =
  link.problem === undefined ? (
    <Checkout
      paymentReference={link.paymentReference}
      checkout={createCheckout({ baseUrl: location.origin, apiKey: link.apiKey })}
    />
  ) : (
    <Problem reason={link.problem} />
  )
const root = document.getElementById('root') as HTMLElement
// The outline that stood here while the script was loading.
root.replaceChildren()
render(page, root)
showHeight(root)
