"""Systems: the lab's handles on servers that it starts or attaches to."""
