"""The headers that every answer carries: what a browser may do with it."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

HELP_PAGE = Path(__file__).parent / "templates" / "help.html"


@cache
def security_headers() -> dict[str, str]:
    """No scripts, no frames, nothing from elsewhere, nothing for other sites.

    The only style allowed is that of the help page, by its hash.
    """
    policy = {
        "default-src": "'none'",
        "style-src": _style_hash(HELP_PAGE.read_text("utf-8")),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


def _style_hash(page: str) -> str:
    """The source expression for the one style element of a page."""
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = hashlib.sha256(style.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
