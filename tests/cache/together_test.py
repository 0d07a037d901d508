"""The real worker with the real daemon: programs cold and warm, a shell with its children in a namespace where the kernel
starts the worker, and what happens to programs when the daemon stops, dies or comes back."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from phybind import BUILD, ROOT, Daemon

sys.path.insert(0, str(ROOT / "tests/support"))
import binfmt

WORKER = Path(os.environ.get("PHYBIN_WORKER", ROOT / "build/arm64/worker/phybin"))
NATIVE = os.uname().machine == "aarch64"
COMPILER = WORKER if NATIVE else BUILD / "worker/phybin-compile-image"
EMULATOR = [] if NATIVE else ["qemu-aarch64", "-cpu", "cortex-a72"]
TEXT = "".join(f"{i * 7919 % 1000} word{i % 37}\n" for i in range(500)).encode()


def daemon(*options, **more):
    return Daemon(f"--compiler={COMPILER}", *options, **more)


class Programs:
    """Runs programs under the worker with a daemon's socket."""

    def __init__(self, running, timeout=10000):
        self.options = [f"--daemon-socket={running.socket}", f"--daemon-timeout={timeout}", "--stats"]

    def start(self, *command, prefix=()):
        return subprocess.Popen([*prefix, *EMULATOR, WORKER, *self.options, *command], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *command, stdin=b"", timeout=120):
        process = self.start(*command)
        out, err = process.communicate(stdin, timeout=timeout)
        return process.returncode, out, err.decode()


def translated(err):
    """Guest instructions translated by the workers that have left these counters."""
    return sum(map(int, re.findall(r"^phybin\[\d+\]: (\d+) guest instructions", err, re.M)))


class ColdAndWarm(unittest.TestCase):
    def check(self, *command, stdin=b""):
        native = subprocess.run(command, input=stdin, capture_output=True, timeout=60)
        with daemon() as running:
            programs = Programs(running)
            counts = []
            for _ in range(4):
                status, out, err = programs.run(*command, stdin=stdin)
                self.assertEqual((status, out), (native.returncode, native.stdout), err)
                counts.append(translated(err))
                running.ctl("settle", check=0)
        self.assertGreater(counts[0], 5000)
        self.assertLess(counts[-1], counts[0] / 100, counts)

    def test_sort(self):
        self.check("/usr/bin/sort", "-n", "-k1,1", stdin=TEXT)

    def test_python(self):
        self.check("/usr/bin/python3", "-c", "import json; print(json.dumps([1, {'a': 2.5}]), sum(range(1000)))")

    def test_static(self):
        self.check("/bin/busybox", "sha256sum", stdin=TEXT)


class Shell(unittest.TestCase):
    """A session of bash as a user has it: the kernel starts the worker for every x86_64 program."""

    SCRIPT = ("for i in 1 2 3 4 5; do echo $i | tr 1-5 a-e; done | sort -r | head -3; x=$(seq 10 | wc -l); echo $x; "
              "printf '%s\\n' b a | sort > $T/f; cat $T/f; (exit 3); echo $?; exit 7")

    @unittest.skipIf(NATIVE, "on an ARM64 machine the system test does this")
    def test_session(self):
        with daemon() as running, tempfile.TemporaryDirectory() as folder:
            worker = Path(folder) / "phybin-binfmt-P"
            worker.symlink_to(WORKER)
            options = f"--daemon-socket={running.socket} --daemon-timeout=10000 --stats"
            environment = {**os.environ, "T": folder, "PHYBIN_OPTIONS": options, "QEMU_CPU": "cortex-a72"}
            native = subprocess.run(["/bin/bash", "-c", self.SCRIPT], capture_output=True, env=environment)
            inside = binfmt.translating_namespace(binfmt.marked_emulator(Path(folder)), worker)
            counts = []
            for _ in range(3):
                result = subprocess.run([*inside, "/bin/bash", "-c", self.SCRIPT], capture_output=True, env=environment,
                                        timeout=300)
                self.assertEqual((result.returncode, result.stdout), (native.returncode, native.stdout),
                                 result.stderr.decode())
                counts.append(translated(result.stderr.decode()))
                running.ctl("settle", check=0)
            self.assertLess(counts[-1], counts[0] / 20, counts)
            self.assertGreaterEqual(running.json("status")["workers"]["total"], 3 * 12)


class DaemonComesAndGoes(unittest.TestCase):
    LOOP = ["/bin/bash", "-c", "for i in 1 2 3 4 5 6; do read -r line; echo $((line * 2)); done"]

    def feed(self, process, number):
        process.stdin.write(f"{number}\n".encode())
        process.stdin.flush()
        return int(process.stdout.readline())

    def test_killed_and_started_again(self):
        with daemon() as running:
            programs = Programs(running)
            for _ in range(2):
                self.assertEqual(programs.run("/bin/bash", "-c", "echo $((6 * 7))")[:2], (0, b"42\n"))
                running.ctl("settle", check=0)
            images = running.json("cache", "list")["images"]
            self.assertGreaterEqual(len(images), 3)
            process = programs.start(*self.LOOP)
            self.assertEqual(self.feed(process, 1), 2)
            running.stop(signal.SIGKILL)
            self.assertEqual(self.feed(process, 2), 4)
            self.assertEqual(programs.run("/bin/true")[0], 0)  # none there: private
            running.start()
            self.assertEqual(self.feed(process, 3), 6)
            status, _, err = programs.run("/bin/bash", "-c", ":")
            self.assertEqual(status, 0)
            self.assertRegex(err, r"[1-9]\d* images")
            for number in (4, 5, 6):
                self.assertEqual(self.feed(process, number), 2 * number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(running.ctl("cache", "verify").returncode, 0)

    def test_cache_deleted_under_programs(self):
        with daemon() as running:
            programs = Programs(running)
            for _ in range(2):
                programs.run(*self.LOOP, stdin=b"1\n" * 6)
                running.ctl("settle", check=0)
            process = programs.start(*self.LOOP)
            self.assertEqual(self.feed(process, 1), 2)
            shutil.rmtree(running.cache)
            for number in (2, 3, 4, 5, 6):
                self.assertEqual(self.feed(process, number), 2 * number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(programs.run("/bin/bash", "-c", "echo on")[:2], (0, b"on\n"))

    def test_stopped_daemon_delays_nobody_for_long(self):
        with daemon() as running:
            quick, patient = Programs(running, timeout=20), Programs(running)
            patient.run("/bin/true")
            began = time.monotonic()
            quick.run("/bin/true")
            usual = time.monotonic() - began
            running.process.send_signal(signal.SIGSTOP)
            try:
                began = time.monotonic()
                self.assertEqual(quick.run("/bin/true")[0], 0)
                self.assertLess(time.monotonic() - began, usual + 2)
            finally:
                running.process.send_signal(signal.SIGCONT)
            self.assertEqual(patient.run("/bin/true")[0], 0)

    def test_twenty_start_while_it_starts(self):
        with daemon() as running:
            programs = Programs(running)
            programs.run("/bin/echo", "x")
            running.ctl("settle", check=0)
            running.stop(signal.SIGKILL)
            started = [programs.start("/bin/echo", str(n)) for n in range(10)]
            running.start()
            started += [programs.start("/bin/echo", str(n)) for n in range(10, 20)]
            for number, process in enumerate(started):
                out, err = process.communicate(timeout=120)
                self.assertEqual((process.returncode, out), (0, f"{number}\n".encode()), err.decode())
            running.ctl("settle", check=0)
            self.assertEqual(running.ctl("cache", "verify").returncode, 0)

    def test_many_at_once_have_each_image_made_once(self):
        with daemon() as running:
            programs = Programs(running)
            started = [programs.start("/bin/echo", "x") for _ in range(16)]
            for process in started:
                process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0)
            running.ctl("settle", check=0)
            modules = [image["module"] for image in running.json("cache", "list")["images"]]
            self.assertEqual(len(modules), len(set(modules)), modules)


@unittest.skipIf(os.getuid() != 0, "needs a file system of its own")
class Disk(unittest.TestCase):
    """A disk that is full, or can only be read, costs images and nothing else; when it is good again they are made."""

    def setUp(self):
        self.daemon = daemon()
        self.daemon.cache.mkdir()
        self.mount("-t", "tmpfs", "-o", "size=64m", "none", self.daemon.cache)
        self.addCleanup(subprocess.run, ["umount", "-l", self.daemon.cache], check=True)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.programs = Programs(self.daemon)

    def mount(self, *arguments):
        if subprocess.run(["mount", *arguments], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")

    def check(self, *command):
        native = subprocess.run(command, capture_output=True)
        status, out, err = self.programs.run(*command)
        self.assertEqual((status, out), (native.returncode, native.stdout), err)
        self.daemon.ctl("settle")
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log.read_text())
        return translated(err)

    def works_again(self):
        """Of a module that was not tried before: one that failed is tried again after a minute."""
        self.check("/usr/bin/wc", "/etc/passwd")
        self.daemon.ctl("settle", check=0)
        modules = [image["module"] for image in self.daemon.json("cache", "list")["images"]]
        self.assertIn("/usr/bin/wc", modules, self.daemon.log.read_text())

    def test_full(self):
        self.check("/bin/true")
        filler = self.daemon.cache / "filler"
        with open(filler, "wb") as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        self.check("/usr/bin/sort", "/etc/passwd")
        self.check("/bin/true")
        self.assertEqual(self.daemon.ctl("cache", "verify").returncode, 0)
        filler.unlink()
        self.works_again()

    def test_read_only(self):
        """A daemon that cannot write says so and ends; programs run without it."""
        self.daemon.stop()
        self.mount("-o", "remount,ro", self.daemon.cache)
        with self.assertRaisesRegex(RuntimeError, "[Rr]ead-only"):
            self.daemon.start()
        self.daemon.process = None
        self.assertEqual(self.programs.run("/bin/echo", "x")[:2], (0, b"x\n"))
        self.mount("-o", "remount,rw", self.daemon.cache)
        self.daemon.start()
        self.works_again()


class ModuleChanges(unittest.TestCase):
    """A program replaced in place is never run with the images of what it was."""

    def build(self, folder, value):
        source = f'#include <stdio.h>\nint main(void) {{ printf("%d\\n", {value}); return {value}; }}\n'
        program = Path(folder) / "program"
        fresh = Path(folder) / "fresh"
        gcc = "gcc" if not NATIVE else "x86_64-linux-gnu-gcc"
        subprocess.run([gcc, "-xc", "-o", fresh, "-"], input=source.encode(), check=True)
        data = fresh.read_bytes()
        with open(program, "r+b" if program.exists() else "wb") as file:
            file.write(data)
            file.truncate(len(data))
        program.chmod(0o755)
        return program

    def test_rewritten_in_place(self):
        with daemon() as running, tempfile.TemporaryDirectory() as folder:
            programs = Programs(running)
            for value in (11, 22, 33):
                program = self.build(folder, value)
                for _ in range(3):
                    self.assertEqual(programs.run(str(program))[:2], (value, f"{value}\n".encode()))
                    running.ctl("settle", check=0)


if __name__ == "__main__":
    unittest.main()
