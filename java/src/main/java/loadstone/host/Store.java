package loadstone.host;

/** A system, opened once for all clients. */
interface Store {
  /** A client, not yet connected. */
  Client client();

  /** The facts of the system: lines of name, tab, value. */
  default String facts() throws Exception {
    return "";
  }

  /** Closes it. All clients have ended by then. */
  default void close() throws Exception {}
}
