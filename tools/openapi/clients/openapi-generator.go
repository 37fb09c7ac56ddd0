// Five calls with the client that openapi-generator writes for Go.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	waybill "example.org/shop/waybill"
)

func main() {
	config := waybill.NewConfiguration()
	config.Servers = waybill.ServerConfigurations{{URL: os.Getenv("WAYBILL_URL")}}
	config.AddDefaultHeader("x-api-key", os.Getenv("WAYBILL_KEY"))
	client := waybill.NewAPIClient(config)
	ctx := context.Background()

	terms := waybill.NewCreatePaymentRequestRequest(os.Getenv("PAYEE"), "1.50", "USDC-ETHEREUM", "USDC-ETHEREUM")
	created, _, err := client.RequestsServiceAPI.CreatePaymentRequest(ctx).CreatePaymentRequestRequest(*terms).Execute()
	must(err)
	expect("the amount of a new request", created.Amount, "1.5")

	read, _, err := client.RequestsServiceAPI.GetPaymentRequest(ctx, created.PaymentReference).Execute()
	must(err)
	expect("the outstanding amount", read.OutstandingAmount, "1.5")

	page, _, err := client.PaymentSearchServiceAPI.SearchPayments(ctx).
		Currency([]string{"USDC", "DAI"}).Status([]waybill.PaymentStatus{"CONFIRMED"}).Limit(2).Execute()
	must(err)
	expect("payments of a page", fmt.Sprint(len(page.Payments)), "2")
	var amount string = page.Payments[0].Amount
	fmt.Println("paid", amount, page.Payments[0].Currency)

	answer, _, err := client.RoutesServiceAPI.GetPaymentRoutes(ctx, created.PaymentReference).Wallet(os.Getenv("WALLET")).Execute()
	must(err)
	expect("the amount of routes", answer.Amount, "1.5")

	_, refused, err := client.PaymentSearchServiceAPI.SearchPayments(ctx).Network([]string{"nope"}).Execute()
	if err == nil || refused.StatusCode != 400 {
		panic("an unknown network was taken")
	}
	body := string(err.(*waybill.GenericOpenAPIError).Body())
	if !strings.Contains(body, "UNKNOWN_NETWORK") {
		panic(body)
	}
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
