import java.util.Arrays;
import java.util.Collections;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.PaymentSearchServiceApi;
import org.openapitools.client.api.RequestsServiceApi;
import org.openapitools.client.api.RoutesServiceApi;
import org.openapitools.client.model.CreatePaymentRequestRequest;
import org.openapitools.client.model.GetPaymentRoutesResponse;
import org.openapitools.client.model.PaymentRequest;
import org.openapitools.client.model.PaymentStatus;
import org.openapitools.client.model.SearchPaymentsResponse;

/** Five calls with the client that openapi-generator writes for Java. */
public final class Calls {
  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("WAYBILL_URL"));
    client.addDefaultHeader("x-api-key", System.getenv("WAYBILL_KEY"));
    RequestsServiceApi requests = new RequestsServiceApi(client);
    PaymentSearchServiceApi search = new PaymentSearchServiceApi(client);

    CreatePaymentRequestRequest terms = new CreatePaymentRequestRequest()
        .payee(System.getenv("PAYEE")).amount("1.50").invoiceCurrency("USDC-ETHEREUM").paymentCurrency("USDC-ETHEREUM");
    PaymentRequest created = requests.createPaymentRequest(terms).execute();
    expect("the amount of a new request", created.getAmount(), "1.5");

    PaymentRequest read = requests.getPaymentRequest(created.getPaymentReference()).execute();
    expect("the outstanding amount", read.getOutstandingAmount(), "1.5");

    SearchPaymentsResponse page = search.searchPayments()
        .currency(Arrays.asList("USDC", "DAI")).status(Collections.singletonList(PaymentStatus.CONFIRMED)).limit(2).execute();
    expect("payments of a page", String.valueOf(page.getPayments().size()), "2");
    String amount = page.getPayments().get(0).getAmount();
    System.out.println("paid " + amount + " " + page.getPayments().get(0).getCurrency());

    GetPaymentRoutesResponse answer = new RoutesServiceApi(client)
        .getPaymentRoutes(created.getPaymentReference(), System.getenv("WALLET")).execute();
    expect("the amount of routes", answer.getAmount(), "1.5");

    try {
      search.searchPayments().network(Collections.singletonList("nope")).execute();
      throw new IllegalStateException("an unknown network was taken");
    } catch (ApiException refused) {
      expect("the status of an unknown network", String.valueOf(refused.getCode()), "400");
      if (!refused.getResponseBody().contains("UNKNOWN_NETWORK")) throw refused;
    }
    System.out.println("five calls");
  }

  private static void expect(String what, String got, String wanted) {
    if (!got.equals(wanted)) throw new IllegalStateException(what + ": " + got + ", not " + wanted);
  }
}
