"""Clusters around exemplars: affinity propagation, size priors, and iterated conditional modes."""
