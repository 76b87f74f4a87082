"""Estimates what reading a text costs an agent."""

ESTIMATOR = "utf8-bytes/4"
"""The only estimator: UTF-8 bytes divided by four, rounded up. It needs no vocabulary and
underestimates.

Real tokens divided by estimated tokens, overall and (in brackets) for nine texts in ten, with the
tokenizers of Claude 2 and GPT-4o (o200k), over 10,000 records made from git commits:

                     Claude 2             o200k
    records as text  1.25 (1.06 to 1.54)  1.16 (0.99 to 1.47)
    records as JSON  1.20 (1.05 to 1.39)  1.12 (0.97 to 1.32)
    rows as text     1.27 (1.09 to 1.52)  1.35 (1.16 to 1.62)
    rows as JSON     1.19 (1.06 to 1.38)  1.16 (1.03 to 1.34)

For the bundled sample it is 1.13 to 1.26 and 1.06 to 1.32; for its four records in Chinese,
Japanese and Korean 1.38 to 1.57 and 1.10 to 1.32. To stay under a real limit, ask for two thirds of
it. `python -m benchmarks tokens CORPUS --tokenizer FILE` measures this again.
"""


def count_tokens(text: str) -> int:
    """The estimated number of tokens in a text."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4
