"""Importers: results that other tools wrote, read into our own terms; one file a format."""
