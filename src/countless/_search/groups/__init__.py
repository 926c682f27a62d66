"""The hard HDP: several data sets that share clusters."""
