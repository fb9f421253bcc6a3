"""The files of servers: downloaded once from their official sources, and stored in the cache."""
