"""Systems: the lab's handles on servers, which it starts on this machine's loopback address or attaches to."""
