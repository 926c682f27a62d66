"""Dissimilarities of rows: numeric, categorical, or mixed tables with missing values."""

from countless._data.cells import code_ordinal
from countless.dissimilarity.convert import to_dissimilarity, to_similarity
from countless.dissimilarity.pairs import METRICS, dissimilarities

__all__ = ["METRICS", "code_ordinal", "dissimilarities", "to_dissimilarity", "to_similarity"]
