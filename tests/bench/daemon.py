"""A translation cache of its own for measurements: phybind in a folder of its own, and how workers find it."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import measure

NATIVE = measure.ROOT / "build" / "native"
# qemu translates the worker itself before it can ask: the wait of 20 ms is not for emulators.
TIMEOUT_MS = 10000


class Daemon:
    """`with Daemon() as daemon`: runs until the end of the block; its cache is empty at first."""

    def __init__(self, *options: str):
        self.folder = Path(tempfile.mkdtemp(prefix="phybin-cache-", dir=measure.OUT))
        self.socket = self.folder / "socket"
        self.command = [str(NATIVE / "daemon/phybind"), "--user", "--socket", str(self.socket), "--cache",
                        str(self.folder / "cache"), "--compiler", str(NATIVE / "worker/phybin-compile-image"), *options]
        self.worker_options = [f"--daemon-socket={self.socket}", f"--daemon-timeout={TIMEOUT_MS}",
                               "--shared-translation-cache=on"]

    def __enter__(self) -> "Daemon":
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        for _ in range(400):
            if self.socket.exists() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        if not self.socket.exists():
            raise measure.Failure("phybind did not start: " + (self.folder / "log").read_text())
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, *arguments: str) -> str:
        command = [str(NATIVE / "client/phybinctl"), "--socket", str(self.socket), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=measure.TIMEOUT, env=os.environ)
        if result.returncode:
            raise measure.Failure(f"phybinctl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def settle(self) -> None:
        """Waits until the daemon has made all images that it wants to make."""
        self.client("settle")

    def status(self) -> dict:
        return json.loads(self.client("status", "--json"))
