// Five calls with the client that oapi-codegen writes.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.org/shop/waybill"
)

func main() {
	withKey := waybill.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("x-api-key", os.Getenv("WAYBILL_KEY"))
		return nil
	})
	client, err := waybill.NewClientWithResponses(os.Getenv("WAYBILL_URL"), withKey)
	must(err)
	ctx := context.Background()

	terms := waybill.CreatePaymentRequestJSONRequestBody{
		Payee: os.Getenv("PAYEE"), Amount: "1.50", InvoiceCurrency: "USDC-ETHEREUM", PaymentCurrency: "USDC-ETHEREUM",
	}
	created, err := client.CreatePaymentRequestWithResponse(ctx, nil, terms)
	must(err)
	expect("the amount of a new request", created.JSON200.Amount, "1.5")

	read, err := client.GetPaymentRequestWithResponse(ctx, created.JSON200.PaymentReference, nil)
	must(err)
	expect("the outstanding amount", read.JSON200.OutstandingAmount, "1.5")

	currency, status, limit := []string{"USDC", "DAI"}, []waybill.PaymentStatus{"CONFIRMED"}, int32(2)
	page, err := client.SearchPaymentsWithResponse(ctx, &waybill.SearchPaymentsParams{Currency: &currency, Status: &status, Limit: &limit})
	must(err)
	expect("payments of a page", fmt.Sprint(len(page.JSON200.Payments)), "2")
	var amount string = page.JSON200.Payments[0].Amount
	fmt.Println("paid", amount, page.JSON200.Payments[0].Currency)

	answer, err := client.GetPaymentRoutesWithResponse(ctx, created.JSON200.PaymentReference, &waybill.GetPaymentRoutesParams{Wallet: os.Getenv("WALLET")})
	must(err)
	expect("the amount of routes", answer.JSON200.Amount, "1.5")

	network := []string{"nope"}
	refused, err := client.SearchPaymentsWithResponse(ctx, &waybill.SearchPaymentsParams{Network: &network})
	must(err)
	expect("the status of an unknown network", refused.Status(), "400 Bad Request")
	fmt.Println("five calls")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(what, got, wanted string) {
	if got != wanted {
		panic(fmt.Sprintf("%s: %s, not %s", what, got, wanted))
	}
}
