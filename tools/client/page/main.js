// The page of a shop on another origin than the service: lists routes, pays with the wallet of the browser, follows the request.
import { createWaybill, PaymentRequest_Status, pay } from '@waybill/client'

const { baseUrl, apiKey, paymentReference } = Object.fromEntries(new URLSearchParams(location.search))

function show(text) {
  document.querySelector('#log').append(Object.assign(document.createElement('li'), { textContent: text }))
}

async function checkOut() {
  const waybill = createWaybill({ baseUrl, apiKey })
  const [wallet] = await window.ethereum.request({ method: 'eth_requestAccounts' })
  const { routes } = await waybill.getPaymentRoutes({ paymentReference, wallet })
  for (const route of routes) show(`route ${route.id}: ${route.sourceAmount} ${route.token}`)
  const following = follow(waybill)
  const onProgress = ({ type }) => show(type)
  const end = await pay({ waybill, paymentReference, route: routes[0], provider: window.ethereum, wallet, onProgress })
  show(`outcome ${end.outcome}`)
  await following
}

async function follow(waybill) {
  for await (const { status } of waybill.watchPaymentRequest(paymentReference)) {
    show(`request ${PaymentRequest_Status[status]}`)
    if (status === PaymentRequest_Status.PAID) return
  }
}

try {
  await checkOut()
  document.title = 'done'
} catch (error) {
  show(String(error))
  document.title = 'failed'
}
