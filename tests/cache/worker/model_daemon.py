"""A daemon for tests: it answers workers as it is told to, well or badly, in Python and without a translator.

Layouts are those of proto/messages.h.
"""

import fcntl
import mmap
import os
import socket
import struct
import threading
from pathlib import Path

VERSION = 1
HELLO, WELCOME, MODULE, IMAGES = 1, 2, 3, 4
OFF, READ, ON, AUTO = range(4)
MORE = 1
HEADER = struct.Struct("<BBHI")
HELLO_BODY = struct.Struct("<32sIIII40s64s")
MODULE_BODY = struct.Struct("<II40s")
OFFER = struct.Struct("<40sQQ")
FILE_KEY = struct.Struct("<QQQqq")
POLICY_BYTES = 4096
COUNTERS = ("guest_instructions", "regions", "code_bytes", "images", "image_bytes", "image_links", "threads")
RING_COUNT, RING, RING_BYTES = 504, 512, 512 << 10
WORKER_BYTES = RING + RING_BYTES
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 2, 4


def file_key(path_or_fd) -> bytes:
    status = os.stat(path_or_fd)
    return FILE_KEY.pack(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def memory_file(size: int, sealed: bool = True) -> int:
    fd = os.memfd_create("model-daemon", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if sealed:
        fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)
    return fd


class Worker:
    """What is known of a worker that has said hello."""

    def __init__(self, hello: bytes):
        (self.translator, self.features, self.options, self.wanted, self.cpu, key, name) = HELLO_BODY.unpack(
            hello[HEADER.size :]
        )
        self.name = name.rstrip(b"\0").decode()
        self.files = {0: key}
        self.paths = {}  # of modules whose descriptor came along, or that an image was offered of
        self.page_fd = memory_file(WORKER_BYTES)
        self.page = mmap.mmap(self.page_fd, WORKER_BYTES)

    def counters(self) -> dict[str, int]:
        return dict(zip(COUNTERS, struct.unpack_from(f"<{len(COUNTERS)}Q", self.page)))

    def ring(self) -> list[tuple[int, int]]:
        """(module, offset in its file) of each entry point that was translated privately."""
        (count,) = struct.unpack_from("<Q", self.page, RING_COUNT)
        count = min(count, RING_BYTES // 8)
        return [struct.unpack_from("<II", self.page, RING + 8 * i) for i in range(count)]


class ModelDaemon:
    """`images`: the image's path by the module's. Subclasses misbehave."""

    def __init__(self, folder: Path, images: dict[Path, Path] | None = None, policy: int = ON):
        self.path = folder / "daemon.sock"
        self.path.unlink(missing_ok=True)
        self.images = dict(images or {})
        self.workers: list[Worker] = []
        self.connections: list[socket.socket] = []
        self.policy_fd = memory_file(POLICY_BYTES)
        self.policy_page = mmap.mmap(self.policy_fd, POLICY_BYTES)
        self.set_policy(policy)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(self.path))
        self.socket.listen(64)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.path.unlink(missing_ok=True)
        self.socket.close()
        for connection in self.connections:
            connection.close()

    def set_policy(self, policy: int) -> None:
        struct.pack_into("<I", self.policy_page, 4 * self.policy_index(), policy)

    def policy_index(self) -> int:
        return 7

    def options(self) -> list[str]:
        """Of workers that talk to this daemon. Under emulation the answer may come late."""
        return [f"--daemon-socket={self.path}", "--daemon-timeout=10000"]

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket):
        try:
            self.serve(connection)
        except OSError:
            pass

    def serve(self, connection: socket.socket):
        worker = None
        while True:
            data, fds, _, _ = socket.recv_fds(connection, 65536, 64)
            if not data:
                return
            kind = data[0]
            if kind == HELLO:
                worker = Worker(data)
                if fds:
                    worker.paths[0] = os.readlink(f"/proc/self/fd/{fds[0]}")
                self.workers.append(worker)
                self.welcome(connection, worker)
            elif kind == MODULE and worker:
                number, _, key = MODULE_BODY.unpack(data[HEADER.size :])
                worker.files[number] = key
                for path in self.images:
                    if file_key(path) == key:
                        worker.paths[number] = str(path)
                if fds:
                    worker.paths[number] = os.readlink(f"/proc/self/fd/{fds[0]}")
                self.module_met(connection, worker, number)
            for fd in fds:
                os.close(fd)

    def module_met(self, connection: socket.socket, worker: Worker, number: int) -> None:
        pass

    def offers(self) -> tuple[bytes, list[int]]:
        body, fds = b"", []
        for number, (module, image) in enumerate(self.images.items()):
            if not Path(image).exists():
                continue
            body += OFFER.pack(file_key(module), os.stat(image).st_size, number)
            fds.append(os.open(image, os.O_RDONLY | os.O_CLOEXEC))
        return body, fds

    def welcome(self, connection: socket.socket, worker: Worker) -> None:
        body, fds = self.offers()
        message = struct.pack("<II", self.policy_index(), len(fds)) + body
        message = HEADER.pack(WELCOME, 0, VERSION, HEADER.size + len(message)) + message
        socket.send_fds(connection, [message], [self.policy_fd, worker.page_fd, *fds])
        for fd in fds:
            os.close(fd)

    def send_images(self, connection: socket.socket, images: dict[Path, Path]) -> None:
        self.images = images
        body, fds = self.offers()
        message = struct.pack("<II", len(fds), 0) + body
        message = HEADER.pack(IMAGES, 0, VERSION, HEADER.size + len(message)) + message
        socket.send_fds(connection, [message], fds)
        for fd in fds:
            os.close(fd)
