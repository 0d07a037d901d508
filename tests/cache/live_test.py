"""phybinctl on a terminal, and a real worker that is steered while it runs."""

import os
import pty
import re
import select
import struct
import subprocess
import termios
import fcntl
import time
import unittest

from cache_daemon import DaemonTest
from phybind import PHYBINCTL, ROOT, Daemon, Worker
from policy_test import wait_for

WORKER = ROOT / "build/arm64/worker/phybin"
QEMU = [] if os.uname().machine == "aarch64" else ["qemu-aarch64", "-cpu", "cortex-a72"]
COMPILER_CC = "gcc" if os.uname().machine == "x86_64" else "x86_64-linux-gnu-gcc"

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int count, char **words) {
  int numbers[500];
  do {
    for (int i = 0; i < 500; ++i) numbers[i] = rand();
    qsort(numbers, 500, sizeof(int), compare);
    for (int i = 1; i < 500; ++i) if (numbers[i - 1] > numbers[i]) return 3;
  } while (access(words[1], F_OK) == 0);  // until the test takes the file away
  puts("sorted");
  return count;
}
"""


class Terminal(unittest.TestCase):
    def run_on_terminal(self, command, lines=10, columns=60):
        """Starts it on a terminal of that size; its process and the terminal's other end."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, master

    def read_until(self, master, wanted, seconds=30):
        text = b""
        deadline = time.monotonic() + seconds
        while wanted not in text and time.monotonic() < deadline:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    text += os.read(master, 65536)
                except OSError:
                    break
        self.assertIn(wanted, text)
        return text

    def test_top_is_drawn_in_place_and_ends_with_q(self):
        with Daemon() as daemon:
            workers = [Worker(daemon, f"a-long-name-of-a-program-{number}") for number in range(12)]
            process, master = self.run_on_terminal([PHYBINCTL, f"--socket={daemon.socket}", "top", "--interval=0.2"])
            text = self.read_until(master, b"a-long-name")
            text += self.read_until(master, b"\x1b[H")  # another round
            self.assertTrue(text.startswith(b"\x1b[?1049h"))
            for screen in text.split(b"\x1b[H")[1:-1]:
                rows = [re.sub(rb"\x1b\[[?0-9]*[A-Za-z]", b"", row) for row in screen.split(b"\r\n")]
                self.assertLessEqual(len(rows), 10)
                for row in rows[2:]:
                    self.assertLessEqual(len(row), 60, row)
            os.write(master, b"q")
            self.read_until(master, b"\x1b[?1049l")
            self.assertEqual(process.wait(10), 0)
            for worker in workers:
                worker.close()

    def test_ctrl_c_restores_the_screen(self):
        with Daemon() as daemon:
            process, master = self.run_on_terminal([PHYBINCTL, f"--socket={daemon.socket}", "top"])
            self.read_until(master, b"no translated program")
            process.send_signal(2)
            self.read_until(master, b"\x1b[?1049l")
            self.assertEqual(process.wait(10), 0)


@unittest.skipUnless(WORKER.exists(), "needs the arm64 build")
class Steering(DaemonTest):
    def test_a_running_program_leaves_its_images_and_goes_on(self):
        daemon = self.daemon()
        compiler = daemon.folder / "compiler"
        compiler.write_text("#!/bin/sh\nexec " + " ".join(QEMU) + f' {WORKER} "$@"\n')
        compiler.chmod(0o755)
        # In the same build as the worker: an image is for that translator alone.
        daemon.stop()
        daemon.options = (f"--compiler={compiler}",)
        daemon.config.write_text("compile_memory = unlimited\n")
        daemon.start()
        source, program = daemon.folder / "sorts.c", daemon.folder / "sorts"
        source.write_text(PROGRAM)
        subprocess.run([COMPILER_CC, "-O1", "-o", program, source], check=True)
        time.sleep(2.1)
        command = [*QEMU, WORKER, f"--daemon-socket={daemon.socket}", "--daemon-timeout=10000", program]
        cold = subprocess.run([*command, "/nonexistent"], capture_output=True, text=True, timeout=120)
        self.assertEqual((cold.returncode, cold.stdout), (2, "sorted\n"), cold.stderr)
        daemon.ctl("settle", check=0)
        self.assertGreaterEqual(len(daemon.json("cache", "list")["images"]), 2, daemon.log.read_text())

        running = daemon.folder / "running"
        running.touch()
        process = subprocess.Popen([*command, running], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        counters = lambda: (daemon.json("top", "--once")["workers"] or [{"images": 0, "guest_instructions": 0}])[0]
        self.assertTrue(wait_for(lambda: counters()["images"] >= 2, 30), counters())
        before = counters()
        self.assertGreater(before["hit_rate"], 0.5)
        daemon.ctl("policy", "set", "--shared-translation-cache=off", "--program=sorts", check=0)
        self.assertTrue(wait_for(lambda: counters()["images"] == 0, 20), counters())
        self.assertTrue(wait_for(lambda: counters()["guest_instructions"] > before["guest_instructions"], 20))
        self.assertEqual(counters()["policy"], "off")
        running.unlink()
        self.assertEqual(process.communicate(timeout=120)[0], "sorted\n")
        self.assertEqual(process.returncode, 2)


if __name__ == "__main__":
    unittest.main()
