package loadstone.host;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The end of a client's operations: what takes longer is interrupted. For libraries whose own limits add up, as those of
 * HBase's client do when many wait for one look-up of where the regions are.
 */
final class Deadline {
  private static final long LOOK_MS = 200;
  private static final long START = System.nanoTime();
  // Between operations, while it is being interrupted, and after.
  private static final long NONE = Long.MAX_VALUE;
  private static final long INTERRUPTING = Long.MIN_VALUE;
  private static final long INTERRUPTED = Long.MIN_VALUE + 1;
  private static final Queue<Deadline> ALL = new ConcurrentLinkedQueue<>();

  private final long limitNs;
  private final AtomicLong due = new AtomicLong(NONE);
  private long set = NONE;
  private Thread thread;

  Deadline(long limitMs) {
    limitNs = TimeUnit.MILLISECONDS.toNanos(limitMs);
    synchronized (ALL) {
      if (ALL.isEmpty()) {
        Thread watch = new Thread(Deadline::watch, "deadlines");
        watch.setDaemon(true);
        watch.start();
      }
      ALL.add(this);
    }
  }

  /** From now on the thread that calls this has its time. */
  void begin() {
    thread = Thread.currentThread();
    set = now() + limitNs;
    due.set(set);
  }

  /** The operation is over; whether it was interrupted. */
  boolean end() {
    if (due.compareAndSet(set, NONE)) {
      return false;
    }
    // The interrupt may be a moment away still; it must not hit what comes next.
    while (due.get() != INTERRUPTED) {
      Thread.onSpinWait();
    }
    Thread.interrupted();
    due.set(NONE);
    return true;
  }

  private static void watch() {
    while (true) {
      try {
        Thread.sleep(LOOK_MS);
      } catch (InterruptedException nobodyDoes) {
        return;
      }
      long now = now();
      for (Deadline each : ALL) {
        each.look(now);
      }
    }
  }

  private void look(long now) {
    long end = due.get();
    if (end > INTERRUPTED && end < now && due.compareAndSet(end, INTERRUPTING)) {
      thread.interrupt();
      due.set(INTERRUPTED);
    }
  }

  /** From 0 on, so that no end of an operation is one of the numbers above. */
  private static long now() {
    return System.nanoTime() - START;
  }
}
