"""Spectral clustering, with the number of clusters from the spectrum."""
