"""The files of servers: fetched once from where their makers publish them, and kept in the cache."""
