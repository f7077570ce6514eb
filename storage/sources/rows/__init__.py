"""Numbers the rows of any format, names their columns, and asks what in them can be read in two ways."""
