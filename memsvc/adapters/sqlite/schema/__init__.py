"""The SQL files of the schema and the code that applies them."""
