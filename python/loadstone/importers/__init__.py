"""Importers: other tools' results as ours, one file for each format."""
