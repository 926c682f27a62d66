"""Graph partitioning by penalised cuts, without choosing the number of clusters."""
