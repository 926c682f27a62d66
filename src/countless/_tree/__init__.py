"""Hierarchical clustering."""
