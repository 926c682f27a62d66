"""What a clustering says, as data first and as text second."""
