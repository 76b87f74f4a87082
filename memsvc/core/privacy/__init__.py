"""What is never stored: private parts, and secrets."""
