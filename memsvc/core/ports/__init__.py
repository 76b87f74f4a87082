"""The ports: the protocols that adapters implement."""
