package loadstone.host;

/** A system that is opened once for all clients. */
interface Store {
  /** Creates a client that is not connected yet. */
  Client client();

  /** The facts of the system: lines of name, tab, value. */
  default String facts() throws Exception {
    return "";
  }

  /** Closes the system. By then, all clients have stopped. */
  default void close() throws Exception {}
}
