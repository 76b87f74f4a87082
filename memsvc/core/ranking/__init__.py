"""What several rankings of the same records say together."""
