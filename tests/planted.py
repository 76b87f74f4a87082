"""Random secrets of many kinds, put together when they are made: no scanner takes this for one."""

import base64
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

LETTERS = string.ascii_letters
ALPHANUMERIC = LETTERS + string.digits
URL_SAFE = f"{ALPHANUMERIC}-_"
UPPER = string.ascii_uppercase + string.digits
DIGITS = string.digits
HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Planted:
    """A secret, and the text that it is found in, such as an assignment."""

    kind: str
    secret: str
    text: str


def planted_secrets(random: Random, each: int) -> list[Planted]:
    """So many secrets of each kind."""
    return [plant(random, kind) for _ in range(each) for kind in KINDS]


def plant(random: Random, kind: str) -> Planted:
    """One secret of a kind."""
    made = KINDS[kind](random)
    secret, text = made if isinstance(made, tuple) else (made, made)
    return Planted(kind, secret, text)


def _some(random: Random, alphabet: str, length: int) -> str:
    return "".join(random.choices(alphabet, k=length))


def _token(start: str, alphabet: str, *lengths: int, joint: str = "") -> Callable[[Random], str]:
    def make(random: Random) -> str:
        return start + joint.join(_some(random, alphabet, length) for length in lengths)

    return make


def _literal(random: Random) -> str:
    """A password such as people make: letters of both cases and digits."""
    mixed = [
        random.choice(string.ascii_lowercase),
        random.choice(string.ascii_uppercase),
        *random.choices(string.digits, k=2),
        *random.choices(ALPHANUMERIC, k=10),
    ]
    random.shuffle(mixed)
    return "".join(mixed)


def _inside(form: str) -> Callable[[Random], tuple[str, str]]:
    def make(random: Random) -> tuple[str, str]:
        secret = _literal(random)
        return secret, form.replace("…", secret)

    return make


def _prefixed(form: str, make: Callable[[Random], str]) -> Callable[[Random], tuple[str, str]]:
    def put(random: Random) -> tuple[str, str]:
        secret = make(random)
        return secret, form.replace("…", secret)

    return put


def _base64(length: int) -> Callable[[Random], str]:
    return lambda random: base64.b64encode(random.randbytes(length)).decode()


def _json_web_token(random: Random) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": _some(random, ALPHANUMERIC, 12), "iat": 1}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(text.rstrip("=") for text in coded), _some(random, URL_SAFE, 43)])


def _private_key(name: str, *, closed: bool = True) -> Callable[[Random], str]:
    def make(random: Random) -> str:
        lines = [_some(random, f"{ALPHANUMERIC}+/", 64) for _ in range(6)]
        begin, end = f"-----BEGIN {name}" + " KEY", f"-----END {name}" + " KEY"
        tail = " BLOCK-----" if name.startswith("PGP") else "-----"
        return "\n".join([begin + tail, *lines, *([end + tail] if closed else [])])

    return make


KINDS: dict[str, Callable[[Random], str | tuple[str, str]]] = {
    "aws key id": _token("AK" + "IA", string.ascii_uppercase + "234567", 16),
    "aws secret key": _prefixed("AWS_SECRET_ACCESS_KEY=…", _token("", f"{ALPHANUMERIC}+/", 40)),
    **{f"github gh{c}": _token(f"gh{c}_", ALPHANUMERIC, 36) for c in "pousr"},
    "github fine-grained": _token("github" + "_pat_", ALPHANUMERIC, 22, 59, joint="_"),
    "gitlab": _token("gl" + "pat-", ALPHANUMERIC, 20),
    "slack bot": lambda r: (
        "xo"
        + "xb-"
        + "-".join([_some(r, string.digits, 12), _some(r, string.digits, 13)])
        + "-"
        + _some(r, ALPHANUMERIC, 24)
    ),
    "slack user": lambda r: (
        "xo"
        + "xp-"
        + "-".join(_some(r, string.digits, 12) for _ in range(3))
        + "-"
        + _some(r, HEX, 32)
    ),
    "slack user of old": lambda r: (
        "xox"
        + "p-"
        + _some(r, DIGITS, 12)
        + "-"
        + _some(r, DIGITS, 12)
        + "-"
        + _some(r, ALPHANUMERIC, 24)
    ),
    "slack webhook": lambda r: (
        "https://hooks.slack.com/"
        + f"services/T{_some(r, UPPER, 8)}/B{_some(r, UPPER, 10)}/"
        + _some(r, ALPHANUMERIC, 24)
    ),
    "stripe secret": _token("sk" + "_live_", ALPHANUMERIC, 24),
    "stripe restricted": _token("rk" + "_live_", ALPHANUMERIC, 99),
    "google api": _token("AI" + "za", URL_SAFE, 35),
    "google oauth": _token("GOC" + "SPX-", ALPHANUMERIC, 28),
    "openai": lambda r: (
        "sk" + "-" + _some(r, ALPHANUMERIC, 20) + "T3Blbk" + "FJ" + _some(r, ALPHANUMERIC, 20)
    ),
    "openai project": lambda r: (
        "sk" + "-proj-" + _some(r, URL_SAFE, 74) + "T3Blbk" + "FJ" + _some(r, ALPHANUMERIC, 74)
    ),
    "anthropic": lambda r: "sk" + "-ant-api03-" + _some(r, URL_SAFE, 92) + "aAA",
    "npm": _token("np" + "m_", ALPHANUMERIC, 36),
    "pypi": _token("pypi-" + "AgEIcHlwaS5vcmc", ALPHANUMERIC, 150),
    "sendgrid": lambda r: (
        "S" + "G." + _some(r, ALPHANUMERIC, 22) + "." + _some(r, ALPHANUMERIC, 43)
    ),
    "twilio key": _token("S" + "K", HEX, 32),
    "twilio account": _token("A" + "C", HEX, 32),
    "mailchimp": lambda r: _some(r, HEX, 32) + "-us" + str(r.randrange(1, 22)),
    "telegram": lambda r: _some(r, "123456789", 10) + ":AA" + _some(r, ALPHANUMERIC, 33),
    "discord": lambda r: ".".join(
        ["M" + _some(r, ALPHANUMERIC, 23), _some(r, ALPHANUMERIC, 6), _some(r, ALPHANUMERIC, 38)]
    ),
    "azure storage": _prefixed("AccountKey=…;EndpointSuffix=core.windows.net", _base64(64)),
    "azure signature": _prefixed(
        "https://acct.blob.core.windows.net/c?sv=2022-11-02&sp=rl&sig=…",
        _token("", ALPHANUMERIC, 43),
    ),
    "hugging face": _token("h" + "f_", LETTERS, 34),
    "digitalocean": _token("do" + "p_v1_", HEX, 64),
    "json web token": _json_web_token,
    "bearer header": _prefixed("Authorization: Bearer …", _token("", ALPHANUMERIC, 40)),
    "basic header": _prefixed("Authorization: Basic …", _base64(21)),
    "password in url": _inside("postgres://app:…@db.internal:5432/prod"),
    "password without user": _inside("redis://:…@cache:6379/0"),
    "rsa key": _private_key("RSA PRIVATE"),
    "unclosed key": _private_key("OPENSSH PRIVATE", closed=False),
    "pgp key": _private_key("PGP PRIVATE"),
    "quoted password": _inside('password = "…"'),
    "yaml password": _inside("  password: …"),
    "exported password": _inside("export DB_PASSWORD=…"),
    "json secret": _inside('{"secret": "…"}'),
    "api key": _inside("API_KEY=…"),
    "client secret": _inside("client_secret: …"),
    "password option": _inside("mysqldump --password … shop"),
}
"""How each kind is made: a secret, or a secret and the text around it that makes it one."""
