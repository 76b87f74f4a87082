"""Settings, and the services built from them: the only code that names adapters."""
