"""The files of servers: fetched once from their official sources, and kept in the cache."""
