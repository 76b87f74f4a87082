"""Records, filters, the query language, fusion, dates: pure Python and numpy."""
