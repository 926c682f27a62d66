"""DP-means and the hard HDP in the feature space of a kernel."""
