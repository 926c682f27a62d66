"""Views of a table: columns that belong together, and the groups of rows that each view makes."""
