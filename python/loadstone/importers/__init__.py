"""Importers: other tools' results, converted to Loadstone's terms; one file per format."""
