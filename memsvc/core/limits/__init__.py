"""How long work may take."""
