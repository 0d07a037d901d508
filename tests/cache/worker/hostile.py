"""Daemons that do something wrong. Whatever it is, the program runs as if there were none."""

import os
import socket
import struct
import threading
import time

from model_daemon import (HEADER, IMAGES, MORE, OFFER, POLICY_BYTES, VERSION, WELCOME, WORKER_BYTES, ModelDaemon, Worker,
                         file_key, memory_file)
from harness import Bench, expect


def runs_alone(bench: Bench, what: str, welcome, *, options=("--daemon-timeout=300",), timeout=20):
    """The program behaves with a daemon whose answer to hello is welcome(daemon, connection, worker)."""
    program = bench.program("hello")
    native = bench.native([program])

    class Hostile(ModelDaemon):
        def welcome(self, connection: socket.socket, worker: Worker) -> None:
            welcome(self, connection, worker)

    with Hostile(bench.folder) as daemon:
        result = bench.translated([program], [f"--daemon-socket={daemon.path}", *options], timeout=timeout)
        result.same_as(native, what)
        expect(len(daemon.workers) == 1, f"{what}: {len(daemon.workers)} workers")
        expect(result.attached == 0, f"{what}: an image was attached")
        return daemon


def silence(bench: Bench):
    start = time.monotonic()
    runs_alone(bench, "silence", lambda *_: None)
    expect(time.monotonic() - start < 5, "waited too long")
    runs_alone(bench, "no patience", lambda *_: None, options=("--daemon-timeout=0",))


def closes(bench: Bench):
    runs_alone(bench, "closed", lambda daemon, connection, worker: connection.shutdown(socket.SHUT_RDWR))


def does_not_accept(bench: Bench):
    """Its queue is full."""
    program = bench.program("hello")
    path = bench.folder / "full.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(0)
    clients = []
    for _ in range(8):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            pass
        clients.append(client)
    bench.translated([program], [f"--daemon-socket={path}"]).same_as(bench.native([program]), "full queue")
    listener.close()


def welcome_bytes(index=7, offers=0, body=b"", *, kind=WELCOME, flags=0, version=VERSION, size=None):
    message = struct.pack("<II", index, offers) + body
    return HEADER.pack(kind, flags, version, HEADER.size + len(message) if size is None else size) + message


def answers(bench: Bench):
    """Messages that are not an answer, with descriptors that are not those."""
    offer = OFFER.pack(bytes(40), 1 << 20, 1)

    def sends(data, *, pages=2, others=0):
        def welcome(daemon, connection, worker):
            fds = [daemon.policy_fd, worker.page_fd][:pages] + [daemon.policy_fd] * others
            socket.send_fds(connection, [data], fds)

        return welcome

    cases = {
        "one byte": sends(b"\2"),
        "zeros": sends(bytes(64)),
        "a header": sends(welcome_bytes()[:8]),
        "half": sends(welcome_bytes()[:12]),
        "garbage": sends(os.urandom(300)),
        "JSON": sends(b'{"error": "no"}'),
        "wrong size": sends(welcome_bytes(size=17)),
        "size 0": sends(welcome_bytes(size=0)),
        "size 4G": sends(welcome_bytes(size=2**32 - 1)),
        "wrong kind": sends(welcome_bytes(kind=9)),
        "Images": sends(welcome_bytes(kind=IMAGES)),
        "wrong version": sends(welcome_bytes(version=2)),
        "no descriptors": sends(welcome_bytes(), pages=0),
        "one descriptor": sends(welcome_bytes(), pages=1),
        "a descriptor more": sends(welcome_bytes(), others=1),
        "an offer without its image": sends(welcome_bytes(offers=1, body=offer)),
        "an image without its offer": sends(welcome_bytes(offers=1), others=1),
        "more offers than said": sends(welcome_bytes(offers=1, body=offer * 2), others=2),
        "2^32 offers": sends(welcome_bytes(offers=2**32 - 1, body=offer), others=1),
        "offers that wrap around": sends(welcome_bytes(offers=(2**32) // 56 + 1, body=offer), others=1),
        "too long": sends(welcome_bytes(offers=500, body=offer * 500), others=60),
        "64 KiB": sends(welcome_bytes(body=bytes(60000))),
        "policy word 1024": sends(welcome_bytes(index=1024)),
        "policy word 2^32-1": sends(welcome_bytes(index=2**32 - 1)),
    }
    for name, welcome in cases.items():
        runs_alone(bench, name, welcome)


def pages(bench: Bench):
    """Pages that are too small, can shrink, or are no memory at all."""
    def sends(make):
        def welcome(daemon, connection, worker):
            fds = make(daemon, worker)
            socket.send_fds(connection, [welcome_bytes()], fds)

        return welcome

    def pipe():
        return os.pipe()[0]

    cases = {
        "small policy page": lambda d, w: [memory_file(POLICY_BYTES - 1), w.page_fd],
        "small own page": lambda d, w: [d.policy_fd, memory_file(WORKER_BYTES - 1)],
        "not sealed": lambda d, w: [memory_file(POLICY_BYTES, sealed=False), memory_file(WORKER_BYTES, sealed=False)],
        "a file": lambda d, w: [d.policy_fd, os.open("/bin/ls", os.O_RDONLY)],
        "pipes": lambda d, w: [pipe(), pipe()],
        "a folder": lambda d, w: [os.open("/", os.O_RDONLY), w.page_fd],
        "swapped": lambda d, w: [w.page_fd, d.policy_fd],
        "a socket": lambda d, w: [d.policy_fd, d.socket.fileno()],
        "no right to write": lambda d, w: [d.policy_fd, os.open(f"/proc/self/fd/{w.page_fd}", os.O_RDONLY)],
    }
    for name, make in cases.items():
        runs_alone(bench, name, sends(make))


def offered_images(bench: Bench):
    """Offers of images that are none."""
    program = bench.program("hello")

    def sends(make):
        def welcome(daemon, connection, worker):
            fd = make()
            body = b"".join(OFFER.pack(file_key(path), 1 << 20, 1) for path in
                            (program, os.path.realpath("/lib64/ld-linux-x86-64.so.2")))
            socket.send_fds(connection, [welcome_bytes(offers=2, body=body)], [daemon.policy_fd, worker.page_fd, fd, fd])

        return welcome

    def directory():
        return os.open("/", os.O_RDONLY)

    cases = {
        "a folder": directory,
        "a pipe": lambda: os.pipe()[0],
        "a program": lambda: os.open("/bin/ls", os.O_RDONLY),
        "empty": lambda: memory_file(0),
        "zeros": lambda: memory_file(1 << 20),
        "not for reading": lambda: os.open("/bin/ls", os.O_PATH),
        "a device": lambda: os.open("/dev/zero", os.O_RDONLY),
    }
    for name, make in cases.items():
        runs_alone(bench, name, sends(make))


def many_descriptors(bench: Bench):
    """More offers than the process may have descriptors."""
    program = bench.program("hello")
    native = bench.native([program])

    class Many(ModelDaemon):
        def welcome(self, connection, worker):
            body = b"".join(OFFER.pack(struct.pack("<QQQqq", 1, n, 1, 1, 1), 1 << 20, n) for n in range(60))
            socket.send_fds(connection, [welcome_bytes(offers=60, body=body)],
                            [self.policy_fd, worker.page_fd, *[self.policy_fd] * 60])

    for limit in (1024, 64, 32, 16, 10):
        with Many(bench.folder) as daemon:
            result = bench.translated([program], daemon.options(), before=f"ulimit -n {limit}")
            result.same_as(native, f"{limit} descriptors")


def dies(bench: Bench):
    """The daemon ends while the program runs; it does not matter when."""
    program = bench.program("loader")
    native = bench.native([program])
    for when in range(4):

        class Dying(ModelDaemon):
            def module_met(self, connection, worker, number, when=when):
                if number >= when:
                    connection.shutdown(socket.SHUT_RDWR)

        with Dying(bench.folder) as daemon:
            bench.translated([program], daemon.options()).same_as(native, f"ends at module {when}")


def stops_reading(bench: Bench):
    """Nobody takes the worker's messages: the buffer fills, the program goes on."""
    program = bench.program("loader")
    native = bench.native([program])

    class Stopped(ModelDaemon):
        def serve(self, connection):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            data, fds, _, _ = socket.recv_fds(connection, 65536, 64)
            self.workers.append(Worker(data))
            self.welcome(connection, self.workers[-1])
            time.sleep(60)

    with Stopped(bench.folder) as daemon:
        bench.translated([program], daemon.options()).same_as(native, "nobody reads")


def floods(bench: Bench):
    """Messages without end, good ones and bad ones."""
    program = bench.program("loader")
    native = bench.native([program])
    bad = os.urandom(2000)
    good = HEADER.pack(IMAGES, 0, VERSION, 16) + struct.pack("<II", 0, 0)
    for data in (good, bad):

        class Flood(ModelDaemon):
            def welcome(self, connection, worker, data=data):
                socket.send_fds(connection, [welcome_bytes(flags=MORE)], [self.policy_fd, worker.page_fd])
                threading.Thread(target=self.flood, args=(connection, data), daemon=True).start()

            def flood(self, connection, data):
                try:
                    while True:
                        connection.send(data)
                except OSError:
                    pass

        with Flood(bench.folder) as daemon:
            bench.translated([program], daemon.options()).same_as(native, "flood")


def shared_page_changes(bench: Bench):
    """The daemon writes nonsense into the worker's page: the worker reads nothing there."""
    def welcome(daemon, connection, worker):
        worker.page[:] = b"\xff" * WORKER_BYTES
        socket.send_fds(connection, [welcome_bytes()], [daemon.policy_fd, worker.page_fd])

    runs_alone(bench, "page of ones", welcome, options=("--daemon-timeout=10000",))


def other_user(bench: Bench):
    """A daemon that is neither root's nor phybin's nor the user's own is not spoken to."""
    if os.getuid() != 0:
        return
    program = bench.program("hello")
    other = 65534
    for path in (bench.work, bench.folder):
        path.chmod(0o755)
    with ModelDaemon(bench.folder) as daemon:
        # Who listens is who counts.
        daemon.socket.close()
        daemon.path.unlink(missing_ok=True)
        folder = bench.folder / "other"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        child = os.fork()
        if child == 0:
            os.setuid(other)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(str(folder / "sock"))
            os.chmod(folder / "sock", 0o777)
            listener.listen(8)
            connection, _ = listener.accept()
            os._exit(0 if connection.recv(1000) == b"" else 1)
        while not (folder / "sock").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        result = bench.translated([program], [f"--daemon-socket={folder / 'sock'}", "--daemon-timeout=10000"])
        result.same_as(bench.native([program]), "another user's daemon")
        _, status = os.waitpid(child, 0)
        expect(status == 0, "another user's daemon was told something")


TESTS = [silence, closes, does_not_accept, answers, pages, offered_images, many_descriptors, dies, stops_reading, floods,
         shared_page_changes, other_user]
