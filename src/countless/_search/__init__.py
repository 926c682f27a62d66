"""Small-variance limits of Bayesian nonparametric models: one objective per file."""
