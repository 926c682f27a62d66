"""Input and output of the command: tables, labels and model files."""
