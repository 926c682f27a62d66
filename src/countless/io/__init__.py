"""Tables in, labels and models out: what the command reads and writes."""
