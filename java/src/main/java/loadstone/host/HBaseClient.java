package loadstone.host;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.BufferedMutatorParams;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.PageFilter;

/** A client of HBase that uses YCSB's layout: one row per record, and one qualifier of a single family per field. */
final class HBaseClient extends Client {
  private final Connection connection;
  private final TableName name;
  private final byte[] family;
  private final Durability durability;
  private final boolean buffered;
  private final long bufferBytes;
  private final boolean pageFilter;
  private final Deadline deadline;
  private Table table;
  private BufferedMutator mutator;

  HBaseClient(
      Connection connection,
      TableName name,
      byte[] family,
      Durability durability,
      boolean buffered,
      long bufferBytes,
      boolean pageFilter,
      Deadline deadline) {
    this.connection = connection;
    this.name = name;
    this.family = family;
    this.durability = durability;
    this.buffered = buffered;
    this.bufferBytes = bufferBytes;
    this.pageFilter = pageFilter;
    this.deadline = deadline;
  }

  @Override
  protected void begins() {
    deadline.begin();
  }

  @Override
  protected void ends() throws InterruptedIOException {
    if (deadline.end()) {
      throw new InterruptedIOException("abandoned: HBase's client neither answered nor timed out");
    }
  }

  @Override
  void connect() throws IOException {
    table = connection.getTable(name);
    if (buffered) {
      mutator = connection.getBufferedMutator(new BufferedMutatorParams(name).writeBufferSize(bufferBytes));
    }
  }

  @Override
  Outcome read(Request request) throws IOException {
    Get get = new Get(request.bytes, 0, request.keyLength);
    if (request.allFields()) {
      get.addFamily(family);
    }
    while (request.more()) {
      get.addColumn(family, next(request));
    }
    Result result = table.get(get);
    if (result.isEmpty()) {
      return Outcome.NOT_FOUND;
    }
    fields(result);
    return Outcome.OK;
  }

  @Override
  Outcome scan(Request request) throws IOException {
    Scan scan = new Scan().withStartRow(key(request)).setLimit(request.records()).setCaching(request.records());
    if (pageFilter) {
      scan.setFilter(new PageFilter(request.records()));
    }
    if (request.allFields()) {
      scan.addFamily(family);
    }
    while (request.more()) {
      scan.addColumn(family, next(request));
    }
    try (ResultScanner scanner = table.getScanner(scan)) {
      int left = request.records();
      for (Result result = left > 0 ? scanner.next() : null; result != null; result = scanner.next()) {
        byte[] row = result.getRow();
        int place = answer.beginRecord(row, 0, row.length);
        fields(result);
        answer.endRecord(place);
        if (--left == 0) {
          break;
        }
      }
    }
    return Outcome.OK;
  }

  @Override
  Outcome insert(Request request) throws IOException {
    Put put = new Put(request.bytes, 0, request.keyLength);
    put.setDurability(durability);
    while (request.more()) {
      byte[] qualifier = next(request);
      put.addColumn(family, qualifier, next(request));
    }
    if (mutator == null) {
      table.put(put);
      return Outcome.OK;
    }
    return batch(put);
  }

  /** A put merges columns, and creates the row if it does not exist. */
  @Override
  Outcome update(Request request) throws IOException {
    return insert(request);
  }

  @Override
  Outcome delete(Request request) throws IOException {
    Delete delete = new Delete(key(request));
    delete.setDurability(durability);
    if (mutator == null) {
      table.delete(delete);
      return Outcome.OK;
    }
    return batch(delete);
  }

  @Override
  Outcome cleanup() throws IOException {
    if (table == null) {
      return Outcome.OK;
    }
    try (Table closed = table; BufferedMutator flushed = mutator) {
      table = null;
      return Outcome.OK;
    }
  }

  @Override
  protected Outcome outcome(Throwable thrown) {
    return HBaseOutcome.classify(thrown);
  }

  private Outcome batch(Mutation mutation) throws IOException {
    mutator.mutate(mutation);
    return Outcome.BATCHED_OK;
  }

  private void fields(Result result) {
    for (Cell cell : result.rawCells()) {
      answer.field(
          cell.getQualifierArray(), cell.getQualifierOffset(), cell.getQualifierLength(),
          cell.getValueArray(), cell.getValueOffset(), cell.getValueLength());
    }
  }

  private static byte[] key(Request request) {
    return Arrays.copyOf(request.bytes, request.keyLength);
  }

  private static byte[] next(Request request) {
    int length = request.partLength();
    int at = request.part();
    request.skip(length);
    return Arrays.copyOfRange(request.bytes, at, at + length);
  }
}
