"""Exemplar-based clustering: affinity propagation, size priors, and iterated conditional modes."""
