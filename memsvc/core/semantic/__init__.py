"""What semantic search rests on: the texts that stand for a record, and comparing vectors."""
