"""Downloads the files of servers once, from their official sources, and stores them in the cache."""
