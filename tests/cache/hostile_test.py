"""Clients that flood, stall, send nonsense, show what they may not, or die: they harm only themselves. And compilers
that fail, hang, or try to get out."""

import array
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from cache_daemon import BUILD_ID, DaemonTest, entry_points, meet
from hanging_files import HangingFiles
from phybind import HEADER, HELLO, MODULE, VERSION, WELCOME, Daemon, file_key


class Clients(DaemonTest):
    def setUp(self):
        self.d = self.daemon()
        self.path = self.program(self.d, wait=False)

    def tearDown(self):
        # The daemon has the same process, and serves others as if nothing had been.
        self.assertIsNone(self.d.process.poll())
        began = time.monotonic()
        done = self.jobs(self.d)[0]
        fresh = self.program(self.d, name="fresh", mark=os.urandom(8), wait=False)
        self.run_program(self.d, fresh, uid=4321)
        self.settle(self.d)
        self.assertEqual(self.jobs(self.d)[0], done + 1, self.d.log.read_text())
        self.assertLess(time.monotonic() - began, 15)

    def connect(self, uid=None):
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(channel.close)
        channel.settimeout(30)
        if uid is not None:
            os.seteuid(uid)
        try:
            channel.connect(str(self.d.socket))
        finally:
            os.seteuid(0)
        return channel

    def hello(self, **change):
        fields = {"kind": HELLO, "flags": 0, "version": VERSION, "features": 0, "options": 0, "wanted": 2, "cpu": 0,
                  "name": b"hostile"} | change
        body = BUILD_ID + struct.pack("<IIII", fields["features"], fields["options"], fields["wanted"], fields["cpu"])
        body += file_key(self.path) + fields["name"].ljust(64, b"\0")[:64]
        return HEADER.pack(fields["kind"], fields["flags"], fields["version"],
                           fields.get("bytes", HEADER.size + len(body))) + body

    def assertEnds(self, channel, what):
        try:
            while channel.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        except socket.timeout:
            self.fail(f"still connected: {what}")

    def test_nonsense(self):
        good = self.hello()
        messages = [b"\0", b"\1", b"x" * 65536, good[:7], good[:-1], good + b"\0", bytes(len(good)), b"\xff" * len(good),
                    self.hello(kind=2), self.hello(kind=3), self.hello(kind=99), self.hello(version=2),
                    self.hello(bytes=0), self.hello(bytes=1 << 31), self.hello(wanted=4), self.hello(options=1 << 31)]
        for message in messages:
            channel = self.connect()
            channel.send(message)
            self.assertEnds(channel, message[:40])

    def test_name_without_end(self):
        channel = self.connect()
        channel.send(self.hello(name=b"\n\x1b[31m" * 20))
        self.assertEqual(HEADER.unpack_from(channel.recv(1 << 16))[0], WELCOME)
        self.assertNotIn("\x1b", self.d.log.read_text())

    def test_second_hello(self):
        channel = self.connect()
        channel.send(self.hello())
        channel.recv(1 << 16)
        channel.send(self.hello())
        self.assertEnds(channel, "two greetings")

    def test_json_that_is_none(self):
        for text in (b"{", b"{}", b"{]", b'{"request": 1}', b'{"request": "nothing"}', b"{" * 60000,
                     b'{"request": ' + b"[" * 60000, b'{"request": "\xff\xfe"}'):
            with self.subTest(text[:20]):
                answer = self.d.ask(text)[-1]
                self.assertIs(answer["ok"], False)
                self.assertIn("error", answer)

    def test_languages_do_not_mix(self):
        channel = self.connect()
        channel.send(b'{"request": "status"}')
        channel.recv(1 << 16)
        channel.send(self.hello())
        self.assertEnds(channel, "a client that becomes a worker")

    def test_modules_with_wrong_numbers(self):
        for number in (0, 4097, 0xffffffff):
            with self.worker(self.d, self.path) as worker:
                worker.send(MODULE, struct.pack("<II", number, 0) + file_key(self.path))
                self.assertEnds(worker.channel, number)
        with self.worker(self.d, self.path) as worker:
            for _ in range(2):
                worker.send(MODULE, struct.pack("<II", 1, 0) + file_key(self.path))
            self.assertEnds(worker.channel, "a number twice")

    def test_entries_of_modules_that_are_not_there(self):
        with self.worker(self.d, self.path) as worker:
            for module in (1, 4096, 4097, 0xffffffff):
                meet(worker, module, range(100))
            for count in ((1 << 64) - 1, 1 << 63, 0, 5):
                struct.pack_into("<Q", worker.page, 512 - 8, count)
                time.sleep(0.2)
                self.d.ask({"request": "settle"})

    def test_files_that_prove_nothing(self):
        """Not regular, or not opened for reading: no image of it, whatever its content."""
        read_end, write_end = os.pipe()
        files = {
            "path only": os.open(self.path, os.O_PATH),
            "write only": os.open(self.path, os.O_WRONLY),
            "folder": os.open(self.d.folder, os.O_RDONLY),
            "device": os.open("/dev/zero", os.O_RDONLY),
            "pipe": read_end, "pipe's other end": write_end,
            "socket": os.dup(self.connect().fileno()),
            "empty": os.open("/proc/self/status", os.O_RDONLY),
        }
        self.make_image(self.d, self.path)
        for what, file in files.items():
            channel = self.connect()
            channel.sendmsg([self.hello()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
            message, control, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(256))
            self.assertEqual(struct.unpack_from("<I", message, HEADER.size + 4), (0,), what)
            os.close(file)

    def test_flood_of_one_user_leaves_others_their_time(self):
        stop = time.monotonic() + 4
        child = os.fork()
        if child == 0:
            os.setresuid(1000, 1000, 1000)
            channels = []
            while time.monotonic() < stop:
                if len(channels) < 200:
                    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    channel.setblocking(False)
                    try:
                        channel.connect(str(self.d.socket))
                        channels.append(channel)
                    except OSError:
                        pass
                for channel in channels:
                    try:
                        channel.send(b'{"request": "status", "x": [' + b"[]," * 20000 + b"1]}")
                    except OSError:
                        pass
            os._exit(0)
        time.sleep(1)
        slowest = 0
        while time.monotonic() < stop:
            began = time.monotonic()
            self.worker(self.d, self.path, uid=1001).close()
            slowest = max(slowest, time.monotonic() - began)
        os.waitpid(child, 0)
        self.assertLess(slowest, 1)

    def test_who_says_nothing_is_disconnected(self):
        channel = self.connect()
        began = time.monotonic()
        self.assertEnds(channel, "silence")
        self.assertGreater(time.monotonic() - began, 5)

    def test_client_that_does_not_read(self):
        channel = self.connect(1000)
        channel.setblocking(False)
        deadline = time.monotonic() + 25
        while time.monotonic() < deadline:
            try:
                channel.send(b'{"request": "status"}')
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                return
        self.fail("it may stay for ever")

    def test_many_connections(self):
        channels = [self.connect() for _ in range(500)]
        for channel in channels:
            channel.send(self.hello())
        for channel in channels:
            self.assertEqual(HEADER.unpack_from(channel.recv(1 << 16))[0], WELCOME)
            channel.close()

    @unittest.skipUnless(os.path.exists("/dev/fuse"), "no FUSE")
    def test_file_system_that_hangs(self):
        hello = self.hello()
        with HangingFiles(self.d.folder / "hanging") as hanging:
            child = os.fork()
            if child == 0:
                os.setresuid(1000, 1000, 1000)
                file = os.open(hanging.file, os.O_RDONLY)
                channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                channel.connect(str(self.d.socket))
                channel.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
                time.sleep(100)
            time.sleep(1)
            began = time.monotonic()
            self.assertTrue(self.status(self.d)["ok"])
            with self.worker(self.d, self.path, uid=1001):
                pass
            self.assertLess(time.monotonic() - began, 1)
            time.sleep(6)
            self.assertIn("takes too long", self.d.log.read_text())
            self.assertTrue(self.status(self.d)["ok"])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class Compilers(DaemonTest):
    def script(self, daemon_folder, text):
        path = Path(daemon_folder) / "compiler"
        path.write_text(f"#!/usr/bin/python3\nimport os, sys, time, signal, socket\n"
                        f"if '--translator-build' in sys.argv:\n    print('{BUILD_ID.hex()}')\n    sys.exit(0)\n{text}")
        path.chmod(0o755)
        return path

    def with_compiler(self, text, config=""):
        folder = tempfile.mkdtemp(prefix="phybind-compiler-")
        self.addCleanup(shutil.rmtree, folder)
        self.compiler = self.script(folder, text)
        return self.daemon(config=config)

    def fails(self, text, reason, config=""):
        daemon = self.with_compiler(text, config)
        program = self.program(daemon)
        self.run_program(daemon, program)
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (0, 1))
        self.assertIn(reason, daemon.log.read_text())
        # It is not tried again at once, and nothing of it stays.
        self.run_program(daemon, program, points=entry_points(program, 200))
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (0, 1))
        self.assertEqual(list((daemon.cache / "new").iterdir()), [])
        self.assertEqual(self.run_program(daemon, program, points=[]), [])
        return daemon

    def test_failure(self):
        daemon = self.fails("sys.exit('it broke')", "it broke (exit status 1)")
        daemon.stop()
        daemon.start()
        self.settle(daemon)
        self.run_program(daemon, daemon.folder / "program")
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (0, 0))

    def test_full_disk(self):
        """Nothing is tried while the disk is full, and everything once there is room again."""
        folder = tempfile.mkdtemp(prefix="phybind-compiler-")
        self.addCleanup(shutil.rmtree, folder)
        self.compiler = self.script(folder, f"""
try:
    for _ in range(24):
        os.write(1, bytes(1 << 16))
except OSError as error:
    sys.exit(os.strerror(error.errno))
os.lseek(1, 0, 0)
os.ftruncate(1, 0)
os.execv({str(DaemonTest.compiler)!r}, ['c', *sys.argv[1:]])""")
        daemon = Daemon(f"--compiler={self.compiler}")
        self.addCleanup(daemon.__exit__)
        daemon.cache.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", daemon.cache], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", daemon.cache], check=True)
        daemon.start()
        filler = daemon.cache / "filler"
        filler.write_bytes(bytes((os.statvfs(daemon.cache).f_bavail - 256) * 4096))
        program = self.program(daemon)
        for points in (40, 200):
            self.run_program(daemon, program, points=entry_points(program, points))
            self.settle(daemon)
            time.sleep(3)
            self.assertEqual(self.jobs(daemon), (0, 1), daemon.log.read_text())
        self.assertIn("No space left on device", daemon.log.read_text())
        self.assertEqual(list((daemon.cache / "new").iterdir()), [])
        filler.unlink()
        deadline = time.monotonic() + 20
        while self.jobs(daemon) != (1, 1) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.jobs(daemon), (1, 1), daemon.log.read_text())
        self.assertEqual(len(self.offered(daemon, program)), 1)

    def test_death(self):
        self.fails("os.abort()", "killed by Aborted")

    def test_time(self):
        self.fails("time.sleep(1000)", "longer than compile_time", config="compile_time = 2\n")

    def test_what_is_no_image(self):
        self.fails("os.write(1, b'PhyBinIm' + bytes(100000))", "the image is refused")

    def test_nothing(self):
        self.fails("pass", "the image is refused")

    def test_image_of_another_module(self):
        self.fails(f"os.execv({str(DaemonTest.compiler)!r}, ['c', '--compile-image', '/bin/false', '--entries',"
                   f" '/proc/self/fd/4', '--output', '-', '--host-features=none',"
                   " '--tsc-shift=0'])",
                   "the image is refused: it is not the image that was asked for")

    def test_cage(self):
        """What the compiler may not do. The attempts are made in the child of the daemon, and reported by it."""
        text = """
def attempt(name, action):
    try:
        action()
        return name + " "
    except OSError:
        return ""

other = os.getppid()
done = attempt("socket", lambda: socket.socket(socket.AF_INET))
done += attempt("unix", lambda: socket.socket(socket.AF_UNIX))
done += attempt("write", lambda: os.open("/tmp/phybin-cage", os.O_WRONLY | os.O_CREAT))
done += attempt("append", lambda: os.open("/dev/null", os.O_WRONLY))
done += attempt("update", lambda: os.open("/dev/null", os.O_RDWR))
done += attempt("mkdir", lambda: os.mkdir("/tmp/phybin-cage"))
done += attempt("unlink", lambda: os.unlink(sys.argv[0]))
done += attempt("chmod", lambda: os.chmod(sys.argv[0], 0o777))
done += attempt("rename", lambda: os.rename(sys.argv[0], sys.argv[0] + "x"))
done += attempt("kill", lambda: os.kill(other, 0))
done += attempt("setuid", lambda: os.setuid(0))
extra = [name for name in os.listdir("/proc/self/fd") if name not in ("0", "1", "2", "3", "4")]
status = open("/proc/self/status").read()
done += "" if "NoNewPrivs:\\t1" in status else "privileges "
done += "" if "Seccomp:\\t2" in status else "seccomp "
done += "" if os.getpriority(os.PRIO_PROCESS, 0) == 19 else "priority "
sys.exit(f"cage: [{done}] files {len(extra) - 1}")
"""
        self.fails(text, "cage: [] files 0")


if __name__ == "__main__":
    unittest.main()
