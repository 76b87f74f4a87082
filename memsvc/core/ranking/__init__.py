"""What ranking knows of records beyond their words: chores, and records that are alike."""
