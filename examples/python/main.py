"""Lists routes, searches, watches, creates a request and follows it, and reads a typed error, over gRPC."""

import json
import os
import sys
import uuid

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

sys.path.insert(0, "gen")
from payments.v1 import payment_pb2, payment_request_pb2, payment_request_watch_pb2  # noqa: E402
from payments.v1 import payment_search_service_pb2  # noqa: E402
from payments.v1 import payment_search_service_pb2_grpc, requests_service_pb2, requests_service_pb2_grpc  # noqa: E402
from payments.v1 import routes_service_pb2, routes_service_pb2_grpc  # noqa: E402

KEY = ("x-api-key", os.environ["WAYBILL_KEY"])
with open(os.environ["WAYBILL_DEMO"]) as file:
    demo = json.load(file)
wallet = demo["wallets"]["direct"]["address"]
# A service in production is behind TLS: grpc.secure_channel(host, grpc.ssl_channel_credentials()).
channel = grpc.insecure_channel(os.environ["WAYBILL_HOST"])

routes = routes_service_pb2_grpc.RoutesServiceStub(channel)
reference = demo["requests"][0]["paymentReference"]
asked = routes_service_pb2.GetPaymentRoutesRequest(payment_reference=reference, wallet=wallet)
for route in routes.GetPaymentRoutes(asked, timeout=10, metadata=[KEY]).routes:
    print("route", route.id, "costs", route.fee_amount, route.fee_currency)

payments = payment_search_service_pb2_grpc.PaymentSearchServiceStub(channel)
search = payment_search_service_pb2.SearchPaymentsRequest(
    limit=100, status=[payment_pb2.Payment.CONFIRMED], currency=["DAI"]
)
found = 0
while True:
    page = payments.SearchPayments(search, timeout=10, metadata=[KEY])
    found += len(page.payments)
    if not page.pagination.has_more:
        break
    search.cursor = page.pagination.next_cursor
print("found", found, "payments")

# Five seconds of changes. A longer watch goes on from the last watch_cursor when it breaks off.
try:
    for change in payments.WatchPayments(payment_search_service_pb2.WatchPaymentsRequest(), timeout=5, metadata=[KEY]):
        print("change", payment_search_service_pb2.WatchPaymentsResponse.Type.Name(change.type), change.id)
except grpc.RpcError as error:
    if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
        raise
    print("watched")

requests = requests_service_pb2_grpc.RequestsServiceStub(channel)
order = requests_service_pb2.CreatePaymentRequestRequest(
    payee=wallet, amount="49.90", invoice_currency="USDC", payment_currency="USDC", network="ETHEREUM"
)
# The same key with the same body is answered with the same request: a retry is safe.
once = ("idempotency-key", str(uuid.uuid4()))
created = requests.CreatePaymentRequest(order, timeout=10, metadata=[KEY, once])
print("created", created.payment_reference)

# The request as it is, then after each change.
followed = payment_request_watch_pb2.WatchPaymentRequestRequest(payment_reference=created.payment_reference)
for event in requests.WatchPaymentRequest(followed, timeout=10, metadata=[KEY]):
    if event.request.HasField("cancelled_at"):
        print("followed", created.payment_reference, "cancelled")
        break
    if event.HasField("request"):
        print("followed", created.payment_reference, payment_request_pb2.PaymentRequest.Status.Name(event.request.status))
        cancelled = requests_service_pb2.CancelPaymentRequestRequest(payment_reference=created.payment_reference)
        requests.CancelPaymentRequest(cancelled, timeout=10, metadata=[KEY])

try:
    wrong = requests_service_pb2.CreatePaymentRequestRequest(amount="1")
    requests.CreatePaymentRequest(wrong, timeout=10, metadata=[KEY])
except grpc.RpcError as error:
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in rpc_status.from_call(error).details:
        if detail.Unpack(info):
            print("error", error.code().name, info.reason)
        elif detail.Unpack(bad):
            for violation in bad.field_violations:
                print("violation", violation.field + ":", violation.description)
