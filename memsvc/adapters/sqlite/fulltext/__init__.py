"""Full text on FTS5: what is indexed, matching, ranking, spelling."""
