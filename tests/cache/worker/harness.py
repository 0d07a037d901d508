"""What the tests of the cache share: programs to run, running them, counting what was translated."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
import binfmt  # noqa: E402


def emulation(before: str) -> list[str]:
    """The beginning of a command that runs in a namespace where the kernel starts ARM64 programs; so that workers can
    start workers. `before`: a shell command for the process that then becomes the worker."""
    execute = (before + "; " if before else "") + 'exec "$@"'
    if os.uname().machine == "aarch64":
        return ["sh", "-c", execute, "sh"]
    register = ('mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$1" > /proc/sys/fs/binfmt_misc/register'
                " && shift && ")
    return ["unshare", "-Urm", "sh", "-c", register + execute, "sh", binfmt.arm64_entry(binfmt.find_emulator())]


class Failure(AssertionError):
    pass


def expect(condition: bool, text: str) -> None:
    if not condition:
        raise Failure(text)


class Result:
    def __init__(self, status, out: bytes, err: bytes):
        self.status, self.out = status, out
        # qemu says this for a death by signal; the program does not.
        lines = [line for line in err.splitlines(True) if not line.startswith(b"qemu: uncaught target signal")]
        self.stats = [line.decode() for line in lines if re.match(rb"phybin\[\d+\]: \d+ guest instructions", line)]
        self.err = b"".join(line for line in lines if line.decode(errors="replace") not in self.stats)

    def count(self, what: str) -> int:
        """Of all processes, the number before `what` in the line of --stats."""
        return sum(int(match.group(1)) for line in self.stats if (match := re.search(rf"(\d+) {re.escape(what)}", line)))

    @property
    def translated(self) -> int:
        return self.count("guest instructions")

    @property
    def attached(self) -> int:
        return self.count("images (")

    def same_as(self, other: "Result", what: str) -> None:
        for name in ("status", "out", "err"):
            mine, theirs = getattr(self, name), getattr(other, name)
            expect(mine == theirs, f"{what}: {name} is {shorten(mine)}, should be {shorten(theirs)}")


def shorten(value) -> str:
    text = repr(value)
    return text if len(text) < 700 else text[:300] + " ... " + text[-380:]


class Bench:
    """`folder` is empty at the beginning of each test."""

    def __init__(self, phybin: Path, work: Path):
        self.phybin, self.work = phybin, work
        self.folder = work / "test"
        self.programs = work / "bin"
        self.programs.mkdir()

    def begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def program(self, name: str, source: str | None = None, flags: str = "-O1") -> Path:
        """programs/SOURCE.c, compiled once for each name."""
        path = self.programs / name
        if not path.exists():
            code = HERE / "programs" / ((source or name) + ".c")
            subprocess.run(["gcc", *flags.split(), "-o", path, code, "-lpthread", "-ldl"], check=True)
        return path

    def native(self, command, **options) -> Result:
        return self._run([str(word) for word in command], **options)

    def translated(self, command, options=(), *, before="", **more) -> Result:
        return self._run([*emulation(before), str(self.phybin), "--stats", *options, *(str(word) for word in command)], **more)

    def _run(self, command, *, environment=None, timeout=60, stdin=b"") -> Result:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, **(environment or {})}, start_new_session=True, cwd=self.folder)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure(f"{' '.join(command)} hangs; it said {shorten(out)} {shorten(err)}") from None
        return Result(process.returncode, out, err)
