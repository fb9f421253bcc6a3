package loadstone.host;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The time limit for a client's operations, after which they are interrupted. It is needed for libraries whose own
 * limits add up, such as HBase's client when many threads wait for one lookup of regions.
 */
final class Deadline {
  private static final long CHECK_MS = 200;
  private static final long START = System.nanoTime();
  // Values of the due time: between operations, during an interrupt, and after an interrupt.
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

  /** Starts the time limit for the calling thread. */
  void begin() {
    thread = Thread.currentThread();
    set = now() + limitNs;
    due.set(set);
  }

  /** Ends the time limit of the operation. Returns whether the operation was interrupted. */
  boolean end() {
    if (due.compareAndSet(set, NONE)) {
      return false;
    }
    // The interrupt may still be pending, and must not affect the next operation.
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
        Thread.sleep(CHECK_MS);
      } catch (InterruptedException impossible) {
        return;
      }
      long now = now();
      for (Deadline deadline : ALL) {
        deadline.check(now);
      }
    }
  }

  private void check(long now) {
    long end = due.get();
    if (end > INTERRUPTED && end < now && due.compareAndSet(end, INTERRUPTING)) {
      thread.interrupt();
      due.set(INTERRUPTED);
    }
  }

  /** The time since the class was loaded, so that no due time equals one of the constants above. */
  private static long now() {
    return System.nanoTime() - START;
  }
}
