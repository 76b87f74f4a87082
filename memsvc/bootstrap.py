"""Settings to services: the only place that names adapters."""

from memsvc.dates import now_ms
from memsvc.services import Services
from memsvc.settings import Settings
from memsvc.store.sqlite import SqliteStore, open_store


def build_store(settings: Settings) -> SqliteStore:
    """The store under MEMSVC_HOME, made or brought up to date first."""
    return open_store(settings.database)


def build_services(settings: Settings) -> Services:
    """Everything that the use cases work with."""
    return Services(build_store(settings), now_ms)
