"""How similar a record must be to count as a match by its meaning alone."""

from typing import Final

MIN_COSINE: Final = 0.3
"""The lowest cosine at which a record without any word of the query counts as a match."""

MIN_KNOWN: Final = 0.25
"""The share of its letters in words that the model knows below which a query is unknown to it:
99 of 100 nonsense queries, 1 of 1,000 questions.
"""

MIN_UNKNOWN_COSINE: Final = 0.5
"""The same for a query that is unknown to the model: its cosines say little. A store of 5,000
records has one this similar for 1 in 100 nonsense queries.
"""


def lowest_cosine(known: float) -> float:
    """The lowest cosine that counts for a query of which the model knows this share."""
    return MIN_COSINE if known >= MIN_KNOWN else MIN_UNKNOWN_COSINE
