"""Posterior draws of clusterings: mixtures whose number of components is not fixed."""
