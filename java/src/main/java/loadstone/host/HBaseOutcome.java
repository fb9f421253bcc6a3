package loadstone.host;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;

/** What HBase's exceptions count as. By their names: they come from many packages, some of them only with some versions. */
final class HBaseOutcome {
  private static final Map<String, Outcome> KINDS = new HashMap<>();

  static {
    kinds(Outcome.FORBIDDEN, "AccessDeniedException", "AccessControlException", "FatalConnectionException");
    kinds(Outcome.NO_SPACE, "QuotaExceededException", "SpaceLimitingException", "DSQuotaExceededException");
    kinds(Outcome.TIMEOUT, "CallTimeoutException", "SocketTimeoutException", "TimeoutIOException", "TimeoutException",
        "OperationTimeoutExceededException", "LockTimeoutException", "OutOfOrderScannerNextException",
        "InterruptedIOException");
    kinds(Outcome.BAD_REQUEST, "IllegalArgumentException", "NoSuchColumnFamilyException", "FailedSanityCheckException");
    kinds(Outcome.SERVICE_UNAVAILABLE, "ConnectException", "NoRouteToHostException", "UnknownHostException",
        "ConnectionClosedException", "ConnectionClosingException", "StoppedRpcClientException", "FailedServerException",
        "ClosedChannelException", "EOFException", "SocketException", "NativeIoException", "NotServingRegionException",
        "RegionMovedException", "RegionOpeningException", "RegionOfflineException", "RegionServerStoppedException",
        "RegionServerAbortedException", "ServerNotRunningYetException", "NoServerForRegionException",
        "RegionTooBusyException", "CallQueueTooBigException", "CallDroppedException", "PleaseHoldException",
        "MasterNotRunningException", "ConnectionLossException", "SessionExpiredException", "RetriesExhaustedException",
        "TableNotEnabledException");
  }

  private HBaseOutcome() {}

  private static void kinds(Outcome outcome, String... names) {
    for (String name : names) {
      KINDS.put(name, outcome);
    }
  }

  /** The innermost exception that is known decides: what is around it says how long that was tried. */
  static Outcome of(Throwable thrown) {
    Throwable each = thrown;
    if (thrown instanceof RetriesExhaustedWithDetailsException details) {
      List<Throwable> causes = details.getCauses();
      each = causes.isEmpty() ? thrown : causes.get(0);
    }
    Outcome found = Outcome.ERROR;
    for (int depth = 0; each != null && depth < 100; depth++, each = each.getCause()) {
      String message = String.valueOf(each.getMessage());
      if (message.contains("No space left on device")) {
        return Outcome.NO_SPACE;
      }
      found = KINDS.getOrDefault(each.getClass().getSimpleName(), found);
    }
    return found;
  }
}
