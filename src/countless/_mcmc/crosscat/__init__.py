"""CrossCat: views of dependent columns, and the partition of the rows in each view."""
