"""The penalty path: k at every penalty, the null reference, and the choice."""
