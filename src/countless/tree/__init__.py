"""Trees of clusters."""
