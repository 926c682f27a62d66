"""Cuts of graphs, without choosing how many."""
