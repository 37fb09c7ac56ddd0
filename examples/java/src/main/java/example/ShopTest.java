package example;

import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import waybill.demo.v1.DemoServiceGrpc;
import waybill.demo.v1.Effect;
import waybill.demo.v1.MineBlocksRequest;
import waybill.demo.v1.PayRequestRequest;
import waybill.demo.v1.RefundPaymentRequest;
import waybill.demo.v1.ReorgRequest;
import waybill.payments.v1.CreatePaymentRequestRequest;
import waybill.payments.v1.GetPaymentRequestRequest;
import waybill.payments.v1.GetPaymentRoutesRequest;
import waybill.payments.v1.Payment;
import waybill.payments.v1.PaymentRequest;
import waybill.payments.v1.PaymentSearchServiceGrpc;
import waybill.payments.v1.RequestsServiceGrpc;
import waybill.payments.v1.RoutesServiceGrpc;
import waybill.payments.v1.SearchPaymentsRequest;

/** A shop's test against a demo: an order is paid, refunded in part, and lost and found in a reorg. */
public final class ShopTest {
  private static final String DIRECT = "REQUEST_NETWORK_PAYMENT";
  private final String wallet;
  private final DemoServiceGrpc.DemoServiceBlockingStub demo;
  private final RequestsServiceGrpc.RequestsServiceBlockingStub requests;
  private final PaymentSearchServiceGrpc.PaymentSearchServiceBlockingStub payments;

  private ShopTest(io.grpc.Channel channel, String wallet) {
    this.wallet = wallet;
    demo = DemoServiceGrpc.newBlockingStub(channel);
    requests = RequestsServiceGrpc.newBlockingStub(channel);
    payments = PaymentSearchServiceGrpc.newBlockingStub(channel);
  }

  public static void main(String[] args) throws Exception {
    var file = Struct.newBuilder();
    JsonFormat.parser().merge(Files.readString(Path.of(System.getenv("WAYBILL_DEMO"))), file);
    var known = file.build().getFieldsMap();
    var wallet = known.get("wallets").getStructValue().getFieldsOrThrow("direct").getStructValue().getFieldsOrThrow("address").getStringValue();
    var headers = new Metadata();
    headers.put(Metadata.Key.of("x-api-key", Metadata.ASCII_STRING_MARSHALLER), known.get("apiKey").getStringValue());
    var host = known.get("baseUrl").getStringValue().replace("http://", "");
    var channel = Grpc.newChannelBuilder(host, InsecureChannelCredentials.create())
        .intercept(MetadataUtils.newAttachHeadersInterceptor(headers)).build();
    try {
      new ShopTest(channel, wallet).run(RoutesServiceGrpc.newBlockingStub(channel));
      System.out.println("tested");
    } finally {
      channel.shutdownNow();
    }
  }

  private void run(RoutesServiceGrpc.RoutesServiceBlockingStub routes) {
    var paid = order();
    var asked = GetPaymentRoutesRequest.newBuilder().setPaymentReference(paid).setWallet(wallet).build();
    check(routes.getPaymentRoutes(asked).getRoutesList().stream().anyMatch(route -> route.getId().equals(DIRECT)), "no direct route");
    var id = pay(paid);
    seen(demo.mineBlocks(MineBlocksRequest.newBuilder().setNetwork("ARBITRUM").build())); // until the payment is final
    var status = requests.getPaymentRequest(GetPaymentRequestRequest.newBuilder().setPaymentReference(paid).build()).getStatus();
    check(status == PaymentRequest.Status.PAID, status.name());
    seen(demo.refundPayment(RefundPaymentRequest.newBuilder().setPaymentId(id).setAmount("2.5").build()));
    check(found(paid).get(0).getRefundedAmount().equals("2.5"), "no refund");

    var lost = order();
    var first = pay(lost);
    check(reorg(ReorgRequest.Transactions.DROPPED).contains(first), "not removed");
    check(found(lost).isEmpty(), "still there");
    var again = pay(lost);
    check(reorg(ReorgRequest.Transactions.MINED_AGAIN).contains(again), "not removed");
    check(found(lost).get(0).getId().equals(again), "not back");
  }

  private String order() {
    return requests.createPaymentRequest(CreatePaymentRequestRequest.newBuilder()
        .setPayee("0x00000000000000000000000000000000000b0be5").setAmount("10").setNetwork("ARBITRUM")
        .setInvoiceCurrency("USDC-ARBITRUM").setPaymentCurrency("USDC-ARBITRUM").setRefundAddress(wallet).build()).getPaymentReference();
  }

  private String pay(String reference) {
    var asked = PayRequestRequest.newBuilder().setPaymentReference(reference).setWallet("direct").setRoute(DIRECT).build();
    return seen(demo.payRequest(asked)).getPayments(0).getId();
  }

  private List<String> reorg(ReorgRequest.Transactions transactions) {
    var asked = ReorgRequest.newBuilder().setNetwork("ARBITRUM").setTransactions(transactions).build();
    return seen(demo.reorg(asked)).getRemovedPaymentsList();
  }

  private List<Payment> found(String reference) {
    return payments.searchPayments(SearchPaymentsRequest.newBuilder().addPaymentReference(reference).build()).getPaymentsList();
  }

  private static Effect seen(Effect effect) {
    check(effect.getSeen(), effect.getNotSeenBecause());
    return effect;
  }

  private static void check(boolean ok, String problem) {
    if (!ok) throw new AssertionError(problem);
  }
}
