"""Preprocessing: from a table as people have it to the matrix that is clustered, and back."""
