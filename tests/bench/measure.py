"""Builds the workloads and counts the instructions that they execute under qemu-aarch64.

Everything is counted with count_plugin.c. `cortex-a72` has the features of the ARMv8.0 machines that matter most.
"""

import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workloads import Workload

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "bench"
CPU = "cortex-a72"
TIMEOUT = 600
# What translated code executes at a safepoint: ldur wzr, [x28, #-256] (worker/translator/guest_state.h).
POLL = 0xB850039F

PREFIX = {"amd64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}
V3_FLAGS = {"amd64": ["-O3", "-ffast-math", "-march=x86-64-v3"], "arm64": ["-O3", "-ffast-math"]}
TOOLS = ["empty", "idle", "features"]


class Failure(Exception):
    """A program that could not be built or that gave a wrong result; the text is for the user."""


@dataclass
class Run:
    instructions: int
    polls: int
    output: str


def _newer(target: Path, *sources: Path) -> bool:
    return target.exists() and all(target.stat().st_mtime >= s.stat().st_mtime for s in sources)


def _command(arguments: list[str]) -> None:
    result = subprocess.run(arguments, capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{shlex.join(arguments)}\n{result.stderr}")


def build_plugin() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    source, target = HERE / "count_plugin.c", OUT / "libcount.so"
    if not _newer(target, source):
        _command(["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(target), str(source)])


def _compile(machine: str, source: Path, target: Path, flags: list[str], static: bool) -> Path:
    if not _newer(target, source, HERE / "programs" / "bench.h"):
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = PREFIX[machine] + ("g++" if source.suffix == ".cpp" else "gcc")
        link = ["-static"] if static else []
        _command([compiler, *flags, *link, "-o", str(target), str(source), "-pthread", "-lm"])
    return target


def build(workload: Workload, machine: str, static: bool) -> Path:
    flags = V3_FLAGS[machine] if workload.v3 else ["-O2"]
    folder = OUT / (machine + ("-static" if static else ""))
    return _compile(machine, HERE / "programs" / workload.file(), folder / workload.name, flags, static)


def build_tool(name: str, machine: str, static: bool) -> Path:
    folder = OUT / (machine + ("-static" if static else ""))
    return _compile(machine, HERE / "programs" / f"{name}.c", folder / name, ["-O2"], static)


def count(command: list[str], threads: bool = False, environment: dict[str, str] | None = None,
          expect_exit: int = 0) -> Run:
    """Runs an ARM64 command and returns what it executed and printed."""
    with tempfile.NamedTemporaryFile(dir=OUT, suffix=".count") as total:
        plugin = f"{OUT / 'libcount.so'},out={total.name},word={POLL:x}" + (",threads=on" if threads else "")
        qemu = ["qemu-aarch64", "-cpu", CPU, "-plugin", plugin]
        try:
            result = subprocess.run([*qemu, *command], capture_output=True, text=True, errors="replace",
                                    stdin=subprocess.DEVNULL, timeout=TIMEOUT,
                                    env={**os.environ, **(environment or {})})
        except subprocess.TimeoutExpired:
            raise Failure(f"no end within {TIMEOUT} s: {shlex.join(command)}") from None
        if result.returncode != expect_exit:
            last = (result.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            raise Failure(f"exit status {result.returncode}: {shlex.join(command)}: {last}")
        text = Path(total.name).read_text().split()
        if not text:
            raise Failure(f"no count (the program left without exiting): {shlex.join(command)}")
        return Run(int(text[0]), int(text[1]), result.stdout)


def disassemble(address: int, words: list[str]) -> list[str]:
    """A64 instructions, given as hexadecimal words, in the assembler's text."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as code:
        code.write(b"".join(int(w, 16).to_bytes(4, "little") for w in words))
        code.flush()
        dump = subprocess.run([PREFIX["arm64"] + "objdump", "-D", "-b", "binary", "-m", "aarch64",
                               f"--adjust-vma={address:#x}", code.name], capture_output=True, text=True, check=True)
    return [m.group(1).replace("\t", " ") for m in re.finditer(r"^ *[0-9a-f]+:\t[0-9a-f]+ +\t(.*)$", dump.stdout, re.M)]


# Processes whose memory is compared run at the same time: none is looked at before all are ready.
_ready = threading.Barrier(1)


def private_memories(command: list[str], count: int) -> list[int]:
    """private_memory() of so many processes of the command that run at once."""
    global _ready
    _ready = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: _private_memory(command), range(count)))


def private_memory(command: list[str]) -> int:
    """KiB that one process of an ARM64 command owns alone: pages that it wrote and pages of its memfds, not the
    emulator's own. The command prints `ready` and waits for its input to end while its memory is looked at."""
    return private_memories(command, 1)[0]


def _private_memory(command: list[str]) -> int:
    with tempfile.NamedTemporaryFile(dir=OUT, suffix=".pages") as log:
        process = subprocess.Popen(["qemu-aarch64", "-cpu", CPU, "-d", "page", "-D", log.name, *command],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if process.stdout.readline() != b"ready\n":
                _ready.abort()
                raise Failure(f"not started: {shlex.join(command)}")
            time.sleep(0.1)
            _ready.wait(TIMEOUT)
            smaps = Path(f"/proc/{process.pid}/smaps").read_text()
            layouts = Path(log.name).read_text().split("page layout changed")
            _ready.wait(TIMEOUT)
        finally:
            process.stdin.close()
            process.wait(timeout=30)
    # Guest addresses are host addresses plus a base that qemu chooses, usually 0.
    base = int(re.search(r"guest address space @ (0x[0-9a-f]+)", layouts[0]).group(1), 16)
    ranges = []
    for line in layouts[-1].splitlines():
        fields = line.split()
        if len(fields) == 3 and "-" in fields[0] and len(fields[0]) == 33:
            low, high = fields[0].split("-")
            ranges.append((int(low, 16) + base, int(high, 16) + base))
    total, counted, memfd = 0, False, False
    for line in smaps.splitlines():
        fields = line.split()
        if not fields[0].endswith(":"):
            low, high = (int(x, 16) for x in fields[0].split("-"))
            counted = any(low < r_high and high > r_low for r_low, r_high in ranges)
            memfd = len(fields) > 5 and fields[5].startswith("/memfd:")
        elif counted and fields[0] == ("Pss:" if memfd else "Private_Dirty:"):
            total += int(fields[1])
    return total
