"""Masking: what finds secrets in a text and hides them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and the kind of each that was in it."""

    text: str
    secrets: tuple[str, ...] = ()


Mask = Callable[[str], Masked]
"""Replaces each secret of a text by a mark that names its kind, such as `[secret: GitHub token]`.
A masked text stays as it is.
"""


def no_mask(text: str) -> Masked:
    """The mask of those who look for no secrets: every text stays as it is."""
    return Masked(text)


def mask_errors(errors: Mapping[str, Sequence[str]], mask: Mask) -> dict[str, list[str]]:
    """What is wrong with each field, without the secrets that it quotes."""
    return {
        mask(name).text: [mask(message).text for message in messages]
        for name, messages in errors.items()
    }
