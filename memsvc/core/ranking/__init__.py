"""What ranking knows beyond words: wordings, chores, twins, and records of one work session."""
