"""Biclustering: rows and columns of a table clustered jointly."""
