"""The daemon's part of the cache, driven by workers that only speak: images are made of what was met, offered to the
next ones, survive restarts, and are not what others may not have."""

import os
import shutil
import signal
import struct
import subprocess
import time
import unittest

from phybind import BUILD, MODULE, Daemon, Worker, file_key

COMPILER = BUILD / "worker/phybin-compile-image"
BUILD_ID = bytes.fromhex(subprocess.run([COMPILER, "--translator-build"], capture_output=True, text=True).stdout.strip())
RING = 512


def entry_points(path, count=40):
    """File offsets of functions of an ELF file, with nm or from its dynamic symbols."""
    output = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] == ".text":
            size, address, offset = int(words[2], 16), int(words[3], 16), int(words[5], 16)
    listing = subprocess.run(
        ["objdump", "-d", "-j", ".text", f"--start-address={address}", f"--stop-address={address + min(size, 4096)}", path],
        capture_output=True, text=True, check=True).stdout
    addresses = [int(line.split(":")[0], 16) for line in listing.splitlines() if line.startswith(" ")]
    return [found - address + offset for found in addresses[:count]]


def meet(worker, module, offsets):
    """Writes entry points into the worker's ring."""
    count = struct.unpack_from("<Q", worker.page, RING - 8)[0]
    for offset in offsets:
        struct.pack_into("<II", worker.page, RING + 8 * (count % 65536), module, offset)
        count += 1
    struct.pack_into("<Q", worker.page, RING - 8, count)


class Daemons(unittest.TestCase):
    def daemon(self, *options, **more):
        daemon = Daemon(f"--compiler={COMPILER}", *options, **more)
        self.addCleanup(daemon.__exit__)
        return daemon.start()

    def program(self, daemon, source="/bin/true", name="program"):
        """A copy of a program that is the test's alone, old enough for its digest to be remembered."""
        path = daemon.folder / name
        shutil.copy(source, path)
        path.chmod(0o755)
        time.sleep(2.1)
        return path

    def worker(self, daemon, program, **more):
        worker = Worker(daemon, program=program, build=BUILD_ID, **more)
        self.addCleanup(worker.close)
        return worker

    def settle(self, daemon):
        self.assertTrue(daemon.ask({"request": "settle"})[-1]["idle"])

    def status(self, daemon):
        return daemon.ask({"request": "status"})[-1]


class Images(Daemons):
    def test_made_and_offered(self):
        daemon = self.daemon()
        program = self.program(daemon)
        with self.worker(daemon, program) as first:
            self.assertEqual(first.offers, [])
            meet(first, 0, entry_points(program))
        self.settle(daemon)
        status = self.status(daemon)
        self.assertEqual((status["jobs"]["done"], status["jobs"]["failed"]), (1, 0), daemon.log.read_text())
        second = self.worker(daemon, program)
        self.assertEqual([offer["key"] for offer in second.offers], [file_key(program)])


if __name__ == "__main__":
    unittest.main()
