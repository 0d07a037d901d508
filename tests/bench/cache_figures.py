"""What the shared translation cache gains: warm starts, what is left to translate, memory of many workers, images made
for many workers that start at once. Needs the native build of daemon and client besides the worker."""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import measure
from daemon import Daemon
from measure import Failure

sys.path.insert(0, str(measure.HERE.parent / "support"))
import binfmt

# A profile of one run lacks what the next one does first: paths that depend on addresses or on time.
TRAINING_RUNS = 3
WORKERS = [1, 4, 16, 64]
SHORT_CHILDREN = 200
BASH = f"for ((i = 0; i < {SHORT_CHILDREN}; i++)); do /bin/true; done"
# Modules of Python itself: the ARM64 packages bring no others.
PYTHON_IDLE = ["-S", "-c", "import re; print('ready', flush=True); input()"]
C_SOURCE = """#include <stdio.h>
#include <string.h>
int main(int c, char** v) { for (int i = 0; i < c; i++) printf("%d %zu\\n", i, strlen(v[i])); return 0; }
"""


@dataclass
class Start:
    """Millions of executed instructions."""
    name: str
    native: float | None
    cold: float
    warm: float


@dataclass
class Translated:
    """Guest instructions that the worker translated itself."""
    name: str
    cold: int
    warm: int


@dataclass
class Memory:
    """KiB that each of N workers owns alone at most, the guest's own memory included."""
    name: str
    native: int
    by_count: dict[int, int] = field(default_factory=dict)


def count_all(command: list[str], environment: dict[str, str] | None = None) -> int:
    """Instructions of an ARM64 command and of all that it starts."""
    with tempfile.NamedTemporaryFile(dir=measure.OUT, suffix=".count") as total:
        plugin = f"file={measure.OUT / 'libcount.so'},each={total.name}"
        emulator = measure.OUT / "qemu-aarch64"
        if not emulator.exists():
            # Only the dynamically linked one loads plugins.
            emulator.symlink_to("/usr/bin/qemu-aarch64")
        variables = [f"{k}={v}" for k, v in (environment or {}).items()]
        inside = binfmt.namespace(binfmt.arm64_entry(str(emulator)))
        result = subprocess.run([*inside, "env", f"QEMU_PLUGIN={plugin}", f"QEMU_CPU={measure.CPU}", *variables, *command],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=measure.TIMEOUT)
        if result.returncode:
            raise Failure(f"exit status {result.returncode}: {' '.join(command)}: {result.stderr.strip()[-300:]}")
        return sum(int(line.split()[0]) for line in Path(total.name).read_text().splitlines())


def starts(worker: list[str], native_root: Path) -> list[Start]:
    empty = [str(measure.build_tool("empty", machine, False)) for machine in ("arm64", "amd64")]
    libraries = {"LD_LIBRARY_PATH": str(native_root / "lib/aarch64-linux-gnu")}
    commands = [
        ("empty dynamic program", [empty[0]], [empty[1]]),
        ("python3 -S -c pass", [str(native_root / "usr/bin/python3.11"), "-S", "-c", "pass"],
         ["/usr/bin/python3", "-S", "-c", "pass"]),
        (f"bash with {SHORT_CHILDREN} children", [str(native_root / "bin/bash"), "-c",
                                                   BASH.replace("/bin/true", str(native_root / "bin/true"))],
         ["/bin/bash", "-c", BASH]),
    ]
    rows = []
    for name, native_command, command in commands:
        native = count_all(native_command, libraries) / 1e6 if Path(native_command[0]).exists() else None
        cold = count_all([*worker, "--shared-translation-cache=off", *command]) / 1e6
        with Daemon() as daemon:
            for _ in range(TRAINING_RUNS):
                count_all([*worker, *daemon.worker_options, *command])
                daemon.settle()
            warm = count_all([*worker, *daemon.worker_options, *command]) / 1e6
        rows.append(Start(name, native, cold, warm))
        print(f"{name:26} native {native}, cold {cold:.2f}, warm {warm:.2f}", flush=True)
    return rows


def translated_by(command: list[str]) -> int:
    """Guest instructions translated, summed over all processes of the command, from --stats."""
    inside = binfmt.namespace(binfmt.arm64_entry(binfmt.find_emulator()))
    result = subprocess.run([*inside, "env", f"QEMU_CPU={measure.CPU}", *command], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=measure.TIMEOUT)
    if result.returncode:
        raise Failure(f"exit status {result.returncode}: {' '.join(command)}: {result.stderr.strip()[-300:]}")
    return sum(int(n) for n in re.findall(r"^phybin\[\d+\]: (\d+) guest instructions", result.stderr, re.M))


def large_library() -> str:
    """A program with a library of 100 MiB of code."""
    folder = measure.OUT / "amd64"
    library, program = folder / "liblarge.so", folder / "large_library_user"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        sources = measure.HERE / "programs"
        gcc = measure.PREFIX["amd64"] + "gcc"
        subprocess.run([gcc, "-shared", "-o", library, sources / "large_library.S"], check=True)
        subprocess.run([gcc, "-O2", "-o", program, sources / "large_library_user.c", library, f"-Wl,-rpath,{folder}"],
                       check=True)
    return str(program)


def translations(worker: list[str]) -> list[Translated]:
    source = measure.OUT / "hello.c"
    source.write_text(C_SOURCE)
    commands = [
        ("python3: json, re, decimal", ["/usr/bin/python3", "-c", "import json, re, decimal; json.dumps([1, {'a': 2.5}]); "
                                        "re.findall('a+b', 'xaab'); decimal.Decimal(2).sqrt()"]),
        ("gcc -O2 -c", ["/usr/bin/gcc", "-O2", "-c", "-o", "/dev/null", str(source)]),
        ("openssl dgst, aes", ["/bin/sh", "-c", "openssl dgst -sha512 /bin/ls; openssl enc -aes-256-cbc -pbkdf2 -pass pass:x "
                               "-S 0102030405060708 -in /bin/ls -out /dev/null"]),
        ("library of 100 MiB", [large_library()]),
    ]
    rows = []
    for name, command in commands:
        cold = translated_by([*worker, "--stats", "--shared-translation-cache=off", *command])
        with Daemon() as daemon:
            for _ in range(TRAINING_RUNS):
                translated_by([*worker, "--stats", *daemon.worker_options, *command])
                daemon.settle()
            warm = translated_by([*worker, "--stats", *daemon.worker_options, *command])
        rows.append(Translated(name, cold, warm))
        print(f"{name:26} translated cold {cold}, warm {warm}: {100 * warm / cold:.2f} %", flush=True)
    return rows


def memory(worker: list[str], native_root: Path) -> list[Memory]:
    idle = [str(measure.build_tool("idle", machine, False)) for machine in ("arm64", "amd64")]
    python = str(native_root / "usr/bin/python3.11")
    libraries = ["-E", f"LD_LIBRARY_PATH={native_root / 'lib/aarch64-linux-gnu'}"]
    commands = [("small program", [idle[0]], [idle[1]])]
    if Path(python).exists():
        commands.append(("python3", [*libraries, python, *PYTHON_IDLE], ["/usr/bin/python3", *PYTHON_IDLE]))
    rows = []
    for name, native_command, command in commands:
        native = measure.private_memory(native_command)
        row = Memory(name, native)
        with Daemon() as daemon:
            warm = [*worker, *daemon.worker_options, *command]
            for _ in range(TRAINING_RUNS):
                measure.private_memory(warm)
                daemon.settle()
            for count in WORKERS:
                each = sorted(measure.private_memories(warm, count))
                row.by_count[count] = each[-1]
                print(f"{name:26} {count} workers: {each[0]} to {each[-1]} KiB, median {each[count // 2]}; native {native}",
                      flush=True)
        rows.append(row)
    return rows


def started_at_once(worker: list[str], count: int = 64) -> tuple[int, int]:
    """Images made and compile jobs run for so many workers that start together on an empty cache."""
    command = str(measure.build_tool("empty", "amd64", False))
    with Daemon() as daemon:
        started = [subprocess.Popen(["qemu-aarch64", "-cpu", measure.CPU, *worker, *daemon.worker_options, command])
                   for _ in range(count)]
        failed = sum(process.wait() != 0 for process in started)
        if failed:
            raise Failure(f"{failed} of {count} workers failed")
        daemon.settle()
        status = daemon.status()
    print(f"{count} workers at once: {status['cache']['images']} images, {status['jobs']['done']} jobs", flush=True)
    return status["cache"]["images"], status["jobs"]["done"]


def markdown(worker: list[str], native_root: Path) -> str:
    def millions(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"

    text = ["| program | native, M | cold, M | warm, M | warm : native |", "|---|--:|--:|--:|--:|"]
    for s in starts(worker, native_root):
        ratio = "–" if s.native is None else f"{s.warm / s.native:.2f}"
        text.append(f"| {s.name} | {millions(s.native)} | {millions(s.cold)} | {millions(s.warm)} | {ratio} |")
    text += ["", "Guest instructions that a worker still translates itself:", "",
             "| program | cold | warm | left |", "|---|--:|--:|--:|"]
    for t in translations(worker):
        text.append(f"| {t.name} | {t.cold} | {t.warm} | {100 * t.warm / t.cold:.2f} % |")
    text += ["", "KiB that each of N warm workers that run at once owns alone, the program's own memory included; the largest of "
                 "them. Images are shared and not counted.", "",
             "| program | native | " + " | ".join(f"N = {n}" for n in WORKERS) + " |", "|---|" + "--:|" * (len(WORKERS) + 1)]
    for m in memory(worker, native_root):
        text.append(f"| {m.name} | {m.native} | " + " | ".join(str(m.by_count[n]) for n in WORKERS) + " |")
    images, jobs = started_at_once(worker)
    text += ["", f"64 workers of the same program started at once on an empty cache: {images} images were made in {jobs} "
                 "compile jobs."]
    return "\n".join(text)


def main() -> int:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=["starts", "translations", "memory", "at-once"], metavar="PART",
                        help="starts, translations, memory, at-once (default: all)")
    parser.add_argument("--worker", default=str(measure.ROOT / "build/arm64/worker/phybin"))
    arguments = parser.parse_args()
    worker, native_root = [arguments.worker], measure.OUT / "native-root"
    measure.build_plugin()
    parts = {
        "starts": lambda: starts(worker, native_root),
        "translations": lambda: translations(worker),
        "memory": lambda: memory(worker, native_root),
        "at-once": lambda: started_at_once(worker),
    }
    try:
        for name in arguments.part or parts:
            parts[name]()
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
