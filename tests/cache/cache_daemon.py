"""What the tests of the daemon share: a daemon with a compiler, programs of their own, workers that only speak."""

import os
import re
import shutil
import struct
import subprocess
import time
import unittest

from phybind import BUILD, Daemon, Worker

COMPILER = BUILD / "worker/phybin-compile-image"
BUILD_ID = bytes.fromhex(
    subprocess.run([COMPILER, "--translator-build"], capture_output=True, text=True, check=True).stdout.strip())
# Where proto::WorkerPage has its ring, and how many entries.
RING, ENTRIES = 512, 65536


def entry_points(path, count=40):
    """File offsets of the first instructions of an ELF file's .text."""
    headers = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, check=True).stdout
    size, address, offset = (int(number, 16) for number in
                             re.search(r"\.text +(\w+) +(\w+) +\w+ +(\w+)", headers).groups())
    listing = subprocess.run(["objdump", "-d", f"--start-address={address}",
                              f"--stop-address={address + min(size, 16 * count)}", path],
                             capture_output=True, text=True, check=True).stdout
    addresses = [int(found, 16) for found in re.findall(r"^ +([0-9a-f]+):\t", listing, re.M)]
    return [found - address + offset for found in addresses[:count]]


def meet(worker, module, offsets):
    """Writes entry points into the worker's ring."""
    count = struct.unpack_from("<Q", worker.page, RING - 8)[0]
    for offset in offsets:
        struct.pack_into("<II", worker.page, RING + 8 * (count % ENTRIES), module, offset)
        count += 1
    struct.pack_into("<Q", worker.page, RING - 8, count)


class DaemonTest(unittest.TestCase):
    compiler = COMPILER

    def daemon(self, *options, **more):
        daemon = Daemon(f"--compiler={self.compiler}", *options, **more)
        self.addCleanup(daemon.__exit__)
        return daemon.start()

    def program(self, daemon, source="/bin/true", name="program", owner=0, mark=b"", wait=True):
        """A copy of a program, old enough for its digest to be remembered. `mark` makes it another module."""
        path = daemon.folder / name
        shutil.copy(source, path)
        with open(path, "ab") as file:
            file.write(mark)
        path.chmod(0o755)
        os.chown(path, owner, owner)
        if wait:
            time.sleep(2.2)
        return path

    def worker(self, daemon, program, **more):
        more.setdefault("build", BUILD_ID)
        worker = Worker(daemon, program=program, **more)
        self.addCleanup(worker.close)
        return worker

    def run_program(self, daemon, program, points=None, **more):
        """A run that meets entry points of its program, and ends. What it was offered."""
        with self.worker(daemon, program, **more) as worker:
            offers = [offer["key"] for offer in worker.offers]
            meet(worker, 0, entry_points(program) if points is None else points)
        return offers

    def offered(self, daemon, program, **more):
        """Descriptors of images that a run of the program is offered; the test closes them."""
        worker = self.worker(daemon, program, **more)
        return [offer["file"] for offer in worker.offers]

    def settle(self, daemon):
        self.assertTrue(daemon.ask({"request": "settle"})[-1]["idle"])

    def status(self, daemon):
        return daemon.ask({"request": "status"})[-1]

    def jobs(self, daemon):
        jobs = self.status(daemon)["jobs"]
        return jobs["done"], jobs["failed"]

    def make_image(self, daemon, program, **more):
        done = self.jobs(daemon)[0]
        self.run_program(daemon, program, **more)
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon)[0], done + 1, daemon.log.read_text())

    def image_files(self, daemon):
        return sorted((daemon.cache / "images").glob("*/*"))
