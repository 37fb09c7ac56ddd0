"""Five calls with the client that openapi-python-client writes."""

import os

from client import AuthenticatedClient
from client.api.payment_search_service import search_payments
from client.api.requests_service import create_payment_request, get_payment_request
from client.api.routes_service import get_payment_routes
from client.models import CreatePaymentRequestRequest, PaymentStatus


def expect(what: str, got: object, wanted: str) -> None:
    if got != wanted:
        raise SystemExit(f"{what}: {got}, not {wanted}")


client = AuthenticatedClient(
    base_url=os.environ["WAYBILL_URL"], token=os.environ["WAYBILL_KEY"], prefix="", auth_header_name="x-api-key"
)
terms = CreatePaymentRequestRequest(
    payee=os.environ["PAYEE"], amount="1.50", invoice_currency="USDC-ETHEREUM", payment_currency="USDC-ETHEREUM"
)
created = create_payment_request.sync(client=client, body=terms)
expect("the amount of a new request", created.amount, "1.5")

read = get_payment_request.sync(created.payment_reference, client=client)
expect("the outstanding amount", read.outstanding_amount, "1.5")

page = search_payments.sync(
    client=client, currency=["USDC", "DAI"], status=[PaymentStatus.CONFIRMED], limit=2
)
expect("payments of a page", str(len(page.payments)), "2")
amount: str = page.payments[0].amount
expect("the type of an amount", type(amount).__name__, "str")
print("paid", amount, page.payments[0].currency)

answer = get_payment_routes.sync(created.payment_reference, client=client, wallet=os.environ["WALLET"])
expect("the amount of routes", answer.amount, "1.5")

refused = search_payments.sync_detailed(client=client, network=["nope"])
expect("the status of an unknown network", str(int(refused.status_code)), "400")
print("five calls")
