"""A phybind of its own for a test: started in a temporary folder, asked with phybinctl or directly, and workers that
need no translator: they say what a worker says (proto/messages.h) and see what it is told."""

import array
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PHYBIN_BUILD", ROOT / "build/native"))
PHYBIND = BUILD / "daemon/phybind"
PHYBINCTL = BUILD / "client/phybinctl"

OFF, READ, ON, AUTO = range(4)  # proto::CachePolicy
HELLO, WELCOME, MODULE, IMAGES = range(1, 5)  # proto::MessageKind
VERSION = 1
HEADER = struct.Struct("<BBHI")
KEY = struct.Struct("<QQQqq")  # FileKey


def file_key(path):
    status = os.stat(path)
    return KEY.pack(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Daemon:
    """Use in a `with` statement. `options` are phybind's, `config` the text of its configuration file."""

    def __init__(self, *options, config="", user=None):
        self.folder = Path(tempfile.mkdtemp(prefix="phybind-test-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "socket"
        self.cache = self.folder / "cache"
        self.config = self.folder / "phybin.conf"
        self.config.write_text(config)
        self.options = options
        self.process = None
        self.log = self.folder / "log"

    def start(self):
        command = [PHYBIND, f"--socket={self.socket}", f"--cache={self.cache}", f"--config={self.config}",
                   *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"phybind ended: {self.log.read_text()}")
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                try:
                    probe.connect(str(self.socket))
                    return self
                except OSError:
                    time.sleep(0.02)
        raise RuntimeError("phybind does not listen")

    def stop(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(30)
        status, self.process = self.process.returncode, None
        return status

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            if self.process is not None:
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def ctl(self, *arguments, uid=None, check=None, stdin=None):
        """Runs phybinctl; `uid`: as that user and no group. The result has returncode, stdout and stderr."""
        command = [PHYBINCTL, f"--socket={self.socket}", *map(str, arguments)]
        if uid is not None:
            command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *command]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=stdin)
        if check is not None and result.returncode != check:
            raise AssertionError(f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def json(self, *arguments, uid=None, check=0):
        return json.loads(self.ctl(*arguments, "--json", uid=uid, check=check).stdout)

    def ask(self, request):
        """One request to the control socket; all messages of the answer, and the descriptors."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.settimeout(60)
            channel.connect(str(self.socket))
            channel.send(request if isinstance(request, bytes) else json.dumps(request).encode())
            answers = []
            while True:
                text = channel.recv(1 << 16)
                if not text:
                    return answers
                answers.append(json.loads(text))
                if not answers[-1].get("more"):
                    return answers


class Worker:
    """Says hello like a worker and holds what it got: pages and images. `uid`: the user that it connects as."""

    def __init__(self, daemon, name="prog", wanted=AUTO, cpu=0, program="/bin/true", uid=None, features=0, options=0,
                 build=bytes(32)):
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(60)
        # The peer's user is that of the process at the time of connect().
        if uid is not None:
            os.setegid(uid)
            os.seteuid(uid)
        try:
            self.channel.connect(str(daemon.socket))
        finally:
            if uid is not None:
                os.seteuid(0)
                os.setegid(0)
        body = build + struct.pack("<IIII", features, options, wanted, cpu) + file_key(program)
        body += name.encode().ljust(64, b"\0")
        with open(program, "rb") as file:
            self.send(HELLO, body, [file.fileno()])
        kind, flags, content, files = self.receive()
        assert kind == WELCOME, kind
        self.word, offers = struct.unpack_from("<II", content)
        self.policy = mmap.mmap(files[0], 4096, prot=mmap.PROT_READ)
        self.page = mmap.mmap(files[1], 512 + (512 << 10))
        self.offers = []
        self.take_offers(content[8:], offers, files[2:])
        while flags & 1:
            kind, flags, content, images = self.receive()
            assert kind == IMAGES, kind
            self.take_offers(content[8:], struct.unpack_from("<I", content)[0], images)
            files += images
        for file in files[:2]:
            os.close(file)

    def take_offers(self, content, count, files):
        assert len(files) == count, (len(files), count)
        size = KEY.size + 16
        for index in range(count):
            key = content[index * size:index * size + KEY.size]
            length, number = struct.unpack_from("<QQ", content, index * size + KEY.size)
            self.offers.append({"key": key, "bytes": length, "id": number, "file": files[index]})

    def send(self, kind, body, files=()):
        message = HEADER.pack(kind, 0, VERSION, HEADER.size + len(body)) + body
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self.channel.sendmsg([message], control)

    def receive(self):
        message, control, _, _ = self.channel.recvmsg(1 << 16, socket.CMSG_SPACE(64 * 4))
        files = array.array("i")
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                files.frombytes(data[:len(data) - len(data) % files.itemsize])
        if not message:
            raise ConnectionError("the daemon has closed the connection")
        kind, flags, version, length = HEADER.unpack_from(message)
        assert version == VERSION and length == len(message)
        return kind, flags, message[HEADER.size:], list(files)

    def told(self):
        """The policy that it is to obey now."""
        return struct.unpack_from("<I", self.policy, 4 * self.word)[0]

    def counters(self, **values):
        """Sets counters of its page."""
        names = ["guest_instructions", "regions", "code_bytes", "images", "image_bytes", "image_links", "threads"]
        for name, value in values.items():
            struct.pack_into("<Q", self.page, 8 * names.index(name), value)

    def close(self):
        for offer in self.offers:
            os.close(offer["file"])
        self.offers = []
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
