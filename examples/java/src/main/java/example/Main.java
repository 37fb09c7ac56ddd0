package example;

import com.google.protobuf.Any;
import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import waybill.payments.v1.CancelPaymentRequestRequest;
import waybill.payments.v1.CreatePaymentRequestRequest;
import waybill.payments.v1.GetPaymentRoutesRequest;
import waybill.payments.v1.Payment;
import waybill.payments.v1.PaymentSearchServiceGrpc;
import waybill.payments.v1.RequestsServiceGrpc;
import waybill.payments.v1.RoutesServiceGrpc;
import waybill.payments.v1.SearchPaymentsRequest;
import waybill.payments.v1.WatchPaymentRequestRequest;
import waybill.payments.v1.WatchPaymentsRequest;

/** Lists routes, searches, watches, creates a request and follows it, and reads a typed error, over gRPC. */
public final class Main {
  public static void main(String[] args) throws Exception {
    var file = Struct.newBuilder();
    JsonFormat.parser().merge(Files.readString(Path.of(System.getenv("WAYBILL_DEMO"))), file);
    var demo = file.build().getFieldsMap();
    var wallet = demo.get("wallets").getStructValue().getFieldsOrThrow("direct").getStructValue().getFieldsOrThrow("address").getStringValue();
    var reference = demo.get("requests").getListValue().getValues(0).getStructValue().getFieldsOrThrow("paymentReference").getStringValue();
    // A service in production is behind TLS: TlsChannelCredentials.create().
    var channel = Grpc.newChannelBuilder(System.getenv("WAYBILL_HOST"), InsecureChannelCredentials.create()).build();
    var key = MetadataUtils.newAttachHeadersInterceptor(header("x-api-key", System.getenv("WAYBILL_KEY")));

    var routes = RoutesServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var asked = GetPaymentRoutesRequest.newBuilder().setPaymentReference(reference).setWallet(wallet).build();
    for (var route : routes.withDeadlineAfter(10, TimeUnit.SECONDS).getPaymentRoutes(asked).getRoutesList()) {
      System.out.printf("route %s costs %s %s%n", route.getId(), route.getFeeAmount(), route.getFeeCurrency());
    }

    var payments = PaymentSearchServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var search = SearchPaymentsRequest.newBuilder().setLimit(100).addStatus(Payment.Status.CONFIRMED).addCurrency("DAI");
    var found = 0;
    while (true) {
      var page = payments.withDeadlineAfter(10, TimeUnit.SECONDS).searchPayments(search.build());
      found += page.getPaymentsCount();
      if (!page.getPagination().getHasMore()) break;
      search.setCursor(page.getPagination().getNextCursor());
    }
    System.out.printf("found %d payments%n", found);

    // Five seconds of changes. A longer watch goes on from the last watchCursor when it breaks off.
    try {
      var changes = payments.withDeadlineAfter(5, TimeUnit.SECONDS).watchPayments(WatchPaymentsRequest.getDefaultInstance());
      changes.forEachRemaining(change -> System.out.printf("change %s %s%n", change.getType(), change.getId()));
    } catch (StatusRuntimeException error) {
      if (error.getStatus().getCode() != Status.Code.DEADLINE_EXCEEDED) throw error;
      System.out.println("watched");
    }

    var requests = RequestsServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var order = CreatePaymentRequestRequest.newBuilder().setPayee(wallet).setAmount("49.90")
        .setInvoiceCurrency("USDC").setPaymentCurrency("USDC").setNetwork("ETHEREUM").build();
    // The same key with the same body is answered with the same request: a retry is safe.
    var once = MetadataUtils.newAttachHeadersInterceptor(header("idempotency-key", UUID.randomUUID().toString()));
    var created = requests.withInterceptors(once).withDeadlineAfter(10, TimeUnit.SECONDS).createPaymentRequest(order);
    var payment = created.getPaymentReference();
    System.out.printf("created %s%n", payment);

    // The request as it is, then after each change.
    var followed = WatchPaymentRequestRequest.newBuilder().setPaymentReference(payment).build();
    var events = requests.withDeadlineAfter(10, TimeUnit.SECONDS).watchPaymentRequest(followed);
    while (events.hasNext()) {
      var event = events.next();
      if (!event.hasRequest()) continue; // a heartbeat
      var isCancelled = event.getRequest().hasCancelledAt();
      System.out.printf("followed %s %s%n", payment, isCancelled ? "cancelled" : event.getRequest().getStatus());
      if (isCancelled) break;
      var cancelled = CancelPaymentRequestRequest.newBuilder().setPaymentReference(payment).build();
      requests.withDeadlineAfter(10, TimeUnit.SECONDS).cancelPaymentRequest(cancelled);
    }

    try {
      var wrong = CreatePaymentRequestRequest.newBuilder().setAmount("1").build();
      requests.withDeadlineAfter(10, TimeUnit.SECONDS).createPaymentRequest(wrong);
    } catch (StatusRuntimeException error) {
      for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          System.out.printf("error %s %s%n", error.getStatus().getCode(), detail.unpack(ErrorInfo.class).getReason());
        } else if (detail.is(BadRequest.class)) {
          for (var violation : detail.unpack(BadRequest.class).getFieldViolationsList()) {
            System.out.printf("violation %s: %s%n", violation.getField(), violation.getDescription());
          }
        }
      }
    }
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
  }

  private static Metadata header(String name, String value) {
    var headers = new Metadata();
    headers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
    return headers;
  }
}
