"""Semantic indexes: each module is one adapter behind the port `SemanticIndex`."""
