"""What ranking knows beyond words: several wordings, chores, and records that are alike."""
