"""Installing and checking the agent skill."""
