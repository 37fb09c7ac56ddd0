"""A shop's test against a demo: an order is paid, refunded in part, and lost and found in a reorg."""

import json
import os
import sys
import unittest

import grpc

sys.path.insert(0, "gen")
from demo.v1 import demo_service_pb2 as sandbox, demo_service_pb2_grpc  # noqa: E402
from payments.v1 import payment_request_pb2, payment_search_service_pb2, payment_search_service_pb2_grpc  # noqa: E402
from payments.v1 import requests_service_pb2, requests_service_pb2_grpc  # noqa: E402
from payments.v1 import routes_service_pb2, routes_service_pb2_grpc  # noqa: E402

with open(os.environ["WAYBILL_DEMO"]) as file:
    KNOWN = json.load(file)
WALLET = KNOWN["wallets"]["direct"]["address"]
DIRECT = "REQUEST_NETWORK_PAYMENT"


class Shop(unittest.TestCase):
    def setUp(self):
        channel = grpc.insecure_channel(KNOWN["baseUrl"].removeprefix("http://"))
        self.addCleanup(channel.close)
        self.demo = demo_service_pb2_grpc.DemoServiceStub(channel)
        self.payments = payment_search_service_pb2_grpc.PaymentSearchServiceStub(channel)
        self.requests = requests_service_pb2_grpc.RequestsServiceStub(channel)
        self.routes = routes_service_pb2_grpc.RoutesServiceStub(channel)

    def call(self, method, request):
        return method(request, timeout=60, metadata=[("x-api-key", KNOWN["apiKey"])])

    def order(self):
        terms = requests_service_pb2.CreatePaymentRequestRequest(
            payee="0x00000000000000000000000000000000000b0be5", amount="10", network="ARBITRUM",
            invoice_currency="USDC-ARBITRUM", payment_currency="USDC-ARBITRUM", refund_address=WALLET,
        )
        return self.call(self.requests.CreatePaymentRequest, terms).payment_reference

    def found(self, reference):
        search = payment_search_service_pb2.SearchPaymentsRequest(payment_reference=[reference])
        return self.call(self.payments.SearchPayments, search).payments

    def seen(self, method, request):
        effect = self.call(method, request)
        self.assertTrue(effect.seen, effect.not_seen_because)
        return effect

    def pay(self, reference):
        asked = sandbox.PayRequestRequest(payment_reference=reference, wallet="direct", route=DIRECT)
        return self.seen(self.demo.PayRequest, asked).payments[0].id

    def reorg(self, transactions):
        asked = sandbox.ReorgRequest(network="ARBITRUM", transactions=transactions)
        return self.seen(self.demo.Reorg, asked).removed_payments

    def test_paid_and_refunded(self):
        order = self.order()
        asked = routes_service_pb2.GetPaymentRoutesRequest(payment_reference=order, wallet=WALLET)
        self.assertIn(DIRECT, [route.id for route in self.call(self.routes.GetPaymentRoutes, asked).routes])
        payment = self.pay(order)
        self.seen(self.demo.MineBlocks, sandbox.MineBlocksRequest(network="ARBITRUM"))  # until the payment is final
        request = self.call(self.requests.GetPaymentRequest, requests_service_pb2.GetPaymentRequestRequest(payment_reference=order))
        self.assertEqual(request.status, payment_request_pb2.PaymentRequest.PAID)
        self.seen(self.demo.RefundPayment, sandbox.RefundPaymentRequest(payment_id=payment, amount="2.5"))
        self.assertEqual([each.refunded_amount for each in self.found(order)], ["2.5"])

    def test_lost_and_found(self):
        order = self.order()
        payment = self.pay(order)
        self.assertIn(payment, self.reorg(sandbox.ReorgRequest.DROPPED))
        self.assertEqual(len(self.found(order)), 0)
        payment = self.pay(order)
        self.assertIn(payment, self.reorg(sandbox.ReorgRequest.MINED_AGAIN))
        self.assertEqual([each.id for each in self.found(order)], [payment])


if __name__ == "__main__":
    unittest.main()
