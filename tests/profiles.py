"""How hard the property tests try: `quick`, or what HYPOTHESIS_PROFILE says.

`make check` asks for `thorough`, `make mutants`, which runs them a thousand times, for `few`.
"""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True)
settings.register_profile(
    "thorough",
    max_examples=1000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "few",
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # any example will do: nobody reads it
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

HALF = settings(max_examples=settings().max_examples // 2)
"""For a property of which one example plays a history of writes."""

FEWER = settings(max_examples=settings().max_examples // 4)
"""For a property of which one example asks for dozens of pages or fills a store of its own."""
