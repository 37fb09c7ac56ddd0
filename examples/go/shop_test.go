package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	sandbox "example.org/shop/gen/demo/v1"
	pb "example.org/shop/gen/payments/v1"
)

const direct = "REQUEST_NETWORK_PAYMENT"

// A shop's test against a demo: an order is paid, refunded in part, and lost and found in a reorg.
func TestOrder(t *testing.T) {
	var known struct {
		BaseURL, APIKey string
		Wallets         map[string]struct{ Address string }
	}
	file, err := os.ReadFile(os.Getenv("WAYBILL_DEMO"))
	must(err)
	must(json.Unmarshal(file, &known))
	host := strings.TrimPrefix(known.BaseURL, "http://")
	connection, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", known.APIKey)
	demo, requests := sandbox.NewDemoServiceClient(connection), pb.NewRequestsServiceClient(connection)
	payments, wallet := pb.NewPaymentSearchServiceClient(connection), known.Wallets["direct"].Address

	order := func() string {
		request, err := requests.CreatePaymentRequest(ctx, &pb.CreatePaymentRequestRequest{
			Payee: "0x00000000000000000000000000000000000b0be5", Amount: "10", Network: "ARBITRUM",
			InvoiceCurrency: "USDC-ARBITRUM", PaymentCurrency: "USDC-ARBITRUM", RefundAddress: &wallet,
		})
		must(err)
		return request.PaymentReference
	}
	found := func(reference string) []*pb.Payment {
		page, err := payments.SearchPayments(ctx, &pb.SearchPaymentsRequest{PaymentReference: []string{reference}})
		must(err)
		return page.Payments
	}
	seen := func(effect *sandbox.Effect, err error) *sandbox.Effect {
		t.Helper()
		must(err)
		check(t, effect.Seen, effect.GetNotSeenBecause())
		return effect
	}
	pay := func(reference string) string {
		route := direct
		asked := &sandbox.PayRequestRequest{PaymentReference: reference, Wallet: "direct", Route: &route}
		return seen(demo.PayRequest(ctx, asked)).Payments[0].Id
	}

	paid := order()
	answer, err := pb.NewRoutesServiceClient(connection).GetPaymentRoutes(ctx, &pb.GetPaymentRoutesRequest{PaymentReference: paid, Wallet: wallet})
	must(err)
	check(t, slices.ContainsFunc(answer.Routes, func(route *pb.Route) bool { return route.Id == direct }), "no direct route")
	id := pay(paid)
	seen(demo.MineBlocks(ctx, &sandbox.MineBlocksRequest{Network: "ARBITRUM"})) // until the payment is final
	request, err := requests.GetPaymentRequest(ctx, &pb.GetPaymentRequestRequest{PaymentReference: paid})
	must(err)
	check(t, request.Status == pb.PaymentRequest_PAID, request.Status.String())
	part := "2.5"
	seen(demo.RefundPayment(ctx, &sandbox.RefundPaymentRequest{PaymentId: id, Amount: &part}))
	check(t, found(paid)[0].RefundedAmount == part, "no refund")

	lost := order()
	id = pay(lost)
	reorg := func(transactions sandbox.ReorgRequest_Transactions) *sandbox.Effect {
		return seen(demo.Reorg(ctx, &sandbox.ReorgRequest{Network: "ARBITRUM", Transactions: transactions}))
	}
	check(t, slices.Contains(reorg(sandbox.ReorgRequest_DROPPED).RemovedPayments, id), "not removed")
	check(t, len(found(lost)) == 0, "still there")
	id = pay(lost)
	check(t, slices.Contains(reorg(sandbox.ReorgRequest_MINED_AGAIN).RemovedPayments, id), "not removed")
	check(t, found(lost)[0].Id == id, "not back")
}

func check(t *testing.T, ok bool, problem string) {
	t.Helper()
	if !ok {
		t.Fatal(problem)
	}
}
