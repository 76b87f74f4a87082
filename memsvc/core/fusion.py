"""Two rankings made one: what the words say, and what the meaning says."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

WORDS_LEAST: Final = 0.1
"""The vote of full text when its best match holds no word of the query and nothing is near."""

WORDS_COVERED: Final = 0.4
"""What is added to that vote when its best match holds all words: no paraphrase, then."""

WORDS_NEAR: Final = 0.5
"""What is added to it, times the best cosine: where many records come near, words decide."""


LAST: Final = 0.01
"""What the last candidate of a side keeps of it: it was found, others were not."""


@dataclass(frozen=True, slots=True)
class Fused:
    """What words and meaning contribute to the relevance of a record; their sum is 0-1."""

    lexical: float
    semantic: float

    @property
    def relevance(self) -> float:
        return self.lexical + self.semantic


def fuse(
    lexical: Mapping[Key, float], cosines: Mapping[Key, float], coverage: float
) -> dict[Key, Fused]:
    """Join the candidates of both sides; who is missing on one side gets nothing from it.

    With each side's values stretched so that its best candidate has 1 and its last LAST, and a the
    vote of full text (WORDS_LEAST + WORDS_COVERED * coverage + WORDS_NEAR * best cosine, at most
    1), a record's share is a * lexical + (1 - a) * cosine. It is scaled by how good the best
    candidates are themselves, so that relevance compares between queries.
    """
    nearest = max(0.0, max(cosines.values(), default=0.0))
    vote = min(1.0, WORDS_LEAST + WORDS_COVERED * coverage + WORDS_NEAR * nearest)
    best = vote * max(lexical.values(), default=0.0) + (1 - vote) * nearest
    words, meanings = _stretched(lexical), _stretched(cosines)
    return {
        key: Fused(best * vote * words.get(key, 0.0), best * (1 - vote) * meanings.get(key, 0.0))
        for key in {**words, **meanings}
    }


def _stretched(values: Mapping[Key, float]) -> dict[Key, float]:
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    width = high - low
    if not width:
        return dict.fromkeys(values, 1.0)
    return {key: LAST + (1 - LAST) * (value - low) / width for key, value in values.items()}
