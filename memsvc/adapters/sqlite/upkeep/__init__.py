"""Looking after a store's file: backups, restoring, checks, and saving what is readable."""
