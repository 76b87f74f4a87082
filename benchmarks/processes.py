"""Processes, their memory, CPU time and connections, from Linux's /proc; nothing elsewhere."""

import contextlib
import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
"""Linux only; on other systems nothing is checked."""


def memory(pid: int) -> dict[str, float | None]:
    """The resident memory of a process in MB: now, and its peak."""
    return {"resident MB": _megabytes(pid, "VmRSS"), "peak MB": peak_memory(pid)}


def peak_memory(pid: int) -> float | None:
    """The peak resident memory of a process, in MB."""
    return _megabytes(pid, "VmHWM")


def _megabytes(pid: int, field: str) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return next((int(kilobytes) / 1024 for kilobytes in found), None)


def descriptors(pid: int) -> int | None:
    """The number of open files and sockets of a process."""
    try:
        return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return None


def cpu_seconds(pid: int) -> float | None:
    """The CPU time that a process has used so far, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes_of(home: Path) -> list[int] | None:
    """The other processes started for a store; None if the system does not report them."""
    if not (PROC / "self" / "environ").exists():
        return None
    mark = f"MEMSVC_HOME={home}\0".encode()
    return [pid for pid in _pids() if pid != os.getpid() and mark in _read(pid, "environ")]


def _pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / name).read_bytes()
    return b""


def foreign_connections(pid: int) -> set[str]:
    """The sockets of a process that connect or listen beyond loopback."""
    sockets = _sockets(pid)
    return {
        f"{table}: {here} to {there}"
        for table in ("tcp", "tcp6", "udp", "udp6")
        for here, there, inode in _table(pid, table)
        if inode in sockets and not is_loopback(here if _is_nowhere(there) else there)
    }


def _sockets(pid: int) -> set[str]:
    """The inode numbers of a process's sockets."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for path in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(path).removeprefix("socket:[").rstrip("]"))
    return found


def _table(pid: int, name: str) -> Iterator[tuple[str, str, str]]:
    """Local address, remote address and inode of each line, as Linux writes them."""
    for line in _read(pid, f"net/{name}").decode().splitlines()[1:]:
        fields = line.split()
        yield fields[1].partition(":")[0], fields[2].partition(":")[0], fields[9]


def _is_nowhere(address: str) -> bool:
    return not address.strip("0")


def is_loopback(address: str) -> bool:
    """Whether an address, in hexadecimal words in host byte order, is a loopback address."""
    words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
    known = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = getattr(known, "ipv4_mapped", None)
    return bool((mapped or known).is_loopback)
