"""Rows and columns of a table clustered at once."""
