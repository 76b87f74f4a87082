"""The HTTP routes and the server around them."""
