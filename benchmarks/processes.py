"""What a process uses, as Linux tells it; other systems give None."""

import os
from pathlib import Path


def memory(pid: int) -> dict[str, float | None]:
    """Resident memory of a process in MB: now, and at its highest."""
    return {"resident MB": _megabytes(pid, "VmRSS"), "peak MB": peak_memory(pid)}


def peak_memory(pid: int) -> float | None:
    """The most memory that a process ever had resident, in MB."""
    return _megabytes(pid, "VmHWM")


def _megabytes(pid: int, field: str) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return next((int(kilobytes) / 1024 for kilobytes in found), None)


def cpu_seconds(pid: int) -> float | None:
    """The processor time that a process has used so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
