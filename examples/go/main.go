// Lists routes, searches, watches, creates a request and follows it, and reads a typed error, over gRPC.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "example.org/shop/gen/payments/v1"
)

// demo is what data/demo.json says of the wallets and requests to try.
type demo struct {
	Wallets  map[string]struct{ Address string }
	Requests []struct{ PaymentReference string }
}

func main() {
	var known demo
	file, err := os.ReadFile(os.Getenv("WAYBILL_DEMO"))
	must(err)
	must(json.Unmarshal(file, &known))
	// A service in production is behind TLS: credentials.NewTLS(nil).
	connection, err := grpc.NewClient(os.Getenv("WAYBILL_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer connection.Close()
	withKey := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", os.Getenv("WAYBILL_KEY"))
	wallet := known.Wallets["direct"].Address

	listRoutes(withKey, pb.NewRoutesServiceClient(connection), known.Requests[0].PaymentReference, wallet)
	payments := pb.NewPaymentSearchServiceClient(connection)
	search(withKey, payments)
	watch(withKey, payments)
	requests := pb.NewRequestsServiceClient(connection)
	follow(withKey, requests, create(withKey, requests, wallet))
	fail(withKey, requests)
}

func listRoutes(ctx context.Context, client pb.RoutesServiceClient, reference, wallet string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := client.GetPaymentRoutes(ctx, &pb.GetPaymentRoutesRequest{PaymentReference: reference, Wallet: wallet})
	must(err)
	for _, route := range answer.Routes {
		fmt.Println("route", route.Id, "costs", route.FeeAmount, route.FeeCurrency)
	}
}

func search(ctx context.Context, client pb.PaymentSearchServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	limit, found := int32(100), 0
	request := &pb.SearchPaymentsRequest{Limit: &limit, Status: []pb.Payment_Status{pb.Payment_CONFIRMED}, Currency: []string{"DAI"}}
	for {
		page, err := client.SearchPayments(ctx, request)
		must(err)
		found += len(page.Payments)
		if !page.Pagination.HasMore {
			break
		}
		request.Cursor = page.Pagination.NextCursor
	}
	fmt.Println("found", found, "payments")
}

// watch follows changes for five seconds. A longer watch goes on from the last watch_cursor when it breaks off.
func watch(ctx context.Context, client pb.PaymentSearchServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := client.WatchPayments(ctx, &pb.WatchPaymentsRequest{})
	must(err)
	for {
		change, err := stream.Recv()
		if status.Code(err) == codes.DeadlineExceeded {
			fmt.Println("watched")
			return
		}
		must(err)
		fmt.Println("change", change.Type, change.GetId())
	}
}

func create(ctx context.Context, client pb.RequestsServiceClient, payee string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// The same key with the same body is answered with the same request: a retry is safe.
	ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", fmt.Sprint("go-", time.Now().UnixNano()))
	request, err := client.CreatePaymentRequest(ctx, &pb.CreatePaymentRequestRequest{
		Payee: payee, Amount: "49.90", InvoiceCurrency: "USDC", PaymentCurrency: "USDC", Network: "ETHEREUM",
	})
	must(err)
	fmt.Println("created", request.PaymentReference, request.Status)
	return request.PaymentReference
}

// follow watches a request, cancels it when its state has come, and ends when the watch tells so.
func follow(ctx context.Context, client pb.RequestsServiceClient, reference string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := client.WatchPaymentRequest(ctx, &pb.WatchPaymentRequestRequest{PaymentReference: reference})
	must(err)
	for {
		event, err := stream.Recv()
		must(err)
		if event.Request.GetCancelledAt() != nil {
			fmt.Println("followed", reference, "cancelled")
			return
		}
		if event.Request == nil { // a heartbeat
			continue
		}
		fmt.Println("followed", reference, event.Request.Status)
		_, err = client.CancelPaymentRequest(ctx, &pb.CancelPaymentRequestRequest{PaymentReference: reference})
		must(err)
	}
}

func fail(ctx context.Context, client pb.RequestsServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := client.CreatePaymentRequest(ctx, &pb.CreatePaymentRequestRequest{Amount: "1"})
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			fmt.Println("error", status.Code(err), detail.Reason)
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				fmt.Println("violation", violation.Field+":", violation.Description)
			}
		}
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
