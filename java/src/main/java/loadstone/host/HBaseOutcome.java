package loadstone.host;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;

/** Maps HBase's exceptions to outcomes by name: they are in many packages, and some exist only in some versions. */
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

  /** The innermost known exception decides, because the outer exceptions only state how long the call was retried. */
  static Outcome classify(Throwable thrown) {
    Throwable cause = thrown;
    if (thrown instanceof RetriesExhaustedWithDetailsException details) {
      List<Throwable> causes = details.getCauses();
      cause = causes.isEmpty() ? thrown : causes.get(0);
    }
    Outcome outcome = Outcome.ERROR;
    for (int depth = 0; cause != null && depth < 100; depth++, cause = cause.getCause()) {
      String message = String.valueOf(cause.getMessage());
      if (message.contains("No space left on device")) {
        return Outcome.NO_SPACE;
      }
      outcome = KINDS.getOrDefault(cause.getClass().getSimpleName(), outcome);
    }
    return outcome;
  }
}
