"""Clustering by whichever family of methods the data supports: candidates, evidence, choice."""
