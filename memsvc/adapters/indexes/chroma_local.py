"""Chroma in this process, in its own folder. It uses no network."""

import contextlib
import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import chromadb
from chromadb.api.client import Client
from chromadb.api.shared_system_client import SharedSystemClient

from memsvc.adapters.indexes.chroma import ChromaIndex, in_one_line, quiet_settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.records import Kind

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


HEADER: Final = struct.Struct("<12xQQQ")
"""The header of an hnswlib graph: capacity, number of vectors, bytes per vector."""


def open_chroma(folder: Path, dimension: int) -> ChromaIndex:
    """The index in a folder, created if missing; the lock file is beside it.

    Raises SemanticUnavailable if this or another process already has the folder open. An unreadable
    index shows at the first call, so that it can be cleared.
    """
    return ChromaIndex(_Folder(folder.absolute()), dimension)


class _Folder:
    """A local folder. Chroma misses writes of other processes, so a lock keeps them out."""

    batch = 1_000

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = _locked(folder)

    def name(self, kind: Kind) -> str:
        return str(kind)

    def connect(self, check: Callable[[Client], None]) -> Client:
        # Chroma is native code: damaged files can crash or hang the process. The next process finds
        # the mark and does not try again.
        mark = self._folder / "opening"
        if mark.exists():
            raise OSError("the last process that opened it crashed")
        _check_graphs(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        mark.touch()
        try:
            return self._checked(check)
        finally:
            mark.unlink()

    def _checked(self, check: Callable[[Client], None]) -> Client:
        path = str(self._folder)
        try:
            client = cast(Client, chromadb.PersistentClient(path, quiet_settings()))
        except BaseException:
            # Chroma caches a client that failed to start, and would return it the next time.
            SharedSystemClient._identifier_to_system.pop(path, None)
            raise
        try:
            check(client)
        except BaseException:
            client.close()
            raise
        return client

    def disconnect(self, client: Client) -> None:
        client.close()

    def wipe(self, client: Client | None) -> None:
        if client is not None:
            with contextlib.suppress(
                Exception
            ):  # a client that cannot read may fail to close as well
                client.close()
        if self._folder.is_dir():
            shutil.rmtree(self._folder)
        else:
            self._folder.unlink(missing_ok=True)

    def release(self) -> None:
        os.close(self._descriptor)

    def explain(self, error: BaseException) -> str:
        return (
            f"The semantic index in {self._folder} cannot be used ({in_one_line(error)}); it is "
            "only a copy, so delete the folder and it is rebuilt."
        )


def _check_graphs(folder: Path) -> None:
    """Raise OSError if a graph's files are shorter than its header says."""
    for data in folder.glob("*/data_level0.bin"):
        header = data.with_name("header.bin").read_bytes().ljust(HEADER.size)
        _, count, size = HEADER.unpack_from(header)
        if data.stat().st_size < count * size:
            raise OSError(f"{data.name} is truncated")
        if data.with_name("length.bin").stat().st_size < count * 4:
            raise OSError("length.bin is truncated")


def _locked(folder: Path) -> int:
    """A file descriptor that holds the lock on a folder until it is closed or the process ends."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        path = folder.with_name(folder.name + ".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SemanticUnavailable(
            f"The semantic index in {folder} cannot be created ({in_one_line(error)}); check the "
            "permissions of its folder."
        ) from error
    try:
        _lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise SemanticUnavailable(
            f"The semantic index in {folder} is in use by another process; stop that process first."
        ) from error
    return descriptor
