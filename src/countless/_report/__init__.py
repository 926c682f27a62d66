"""Reports of a clustering: data first, text second."""
