"""Systems: the lab's handles on servers, started here on loopback or attached."""
