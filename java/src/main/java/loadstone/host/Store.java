package loadstone.host;

/** A system, opened once for all clients. */
interface Store {
  /** A client, not yet connected. */
  Client client();

  /** What is known of the system: lines of name, tab, value. */
  default String facts() throws Exception {
    return "";
  }

  /** Closes it. Clients are gone by then. */
  default void close() throws Exception {}
}
