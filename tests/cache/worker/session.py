"""The conversation with a daemon that does everything right, and with none at all."""

import os
import time

from model_daemon import AUTO, OFF, ON, READ, ModelDaemon, file_key
from harness import Bench, expect


def cold_start(bench: Bench):
    """Says who it is, announces its modules, notes what it translates."""
    program = bench.program("hello")
    native = bench.native([program, "a"])
    with ModelDaemon(bench.folder) as daemon:
        result = bench.translated([program, "a"], daemon.options())
        result.same_as(native, "cold")
        expect(len(daemon.workers) == 1, f"{len(daemon.workers)} workers")
        worker = daemon.workers[0]
        expect(worker.name == "hello" and worker.wanted == AUTO, f"name {worker.name}, wants {worker.wanted}")
        expect(worker.files[0] == file_key(program) and worker.paths[0] == str(program), "the program")
        names = [os.path.basename(path) for path in worker.paths.values()]
        expect(any("ld-linux" in n for n in names) and any("libc" in n for n in names), f"modules {names}")
        for number, path in worker.paths.items():
            expect(worker.files[number] == file_key(path), f"the key of {path}")
        ring = worker.ring()
        expect(len(ring) == len(set(ring)), "an entry point was noted twice")
        expect({module for module, _ in ring} == set(worker.paths), "modules in the ring")
        for module, offset in ring:
            expect(offset < os.stat(worker.paths[module]).st_size, f"offset {offset:#x} of {worker.paths[module]}")
        counters = worker.counters()
        expect(counters["guest_instructions"] == result.translated, f"counters {counters}")
        expect(counters["regions"] >= len(ring) and counters["threads"] == 1, f"counters {counters}")


def policies(bench: Bench):
    """off: nothing is connected, or nothing noted; read: nothing noted; the wish is passed on."""
    program = bench.program("hello")
    native = bench.native([program])
    for option, wanted in (("on", ON), ("read", READ), ("auto", AUTO)):
        for policy in (OFF, READ, ON, AUTO, 77):
            with ModelDaemon(bench.folder, policy=policy) as daemon:
                result = bench.translated([program], [*daemon.options(), f"--shared-translation-cache={option}"])
                result.same_as(native, f"{option}, {policy}")
                expect(daemon.workers[0].wanted == wanted, f"wanted {daemon.workers[0].wanted}")
                noted = len(daemon.workers[0].ring())
                expect((noted != 0) == (option != "read" and policy == ON), f"{option}, {policy}: {noted} entries noted")
    with ModelDaemon(bench.folder) as daemon:
        bench.translated([program], [*daemon.options(), "--shared-translation-cache=off"]).same_as(native, "off")
        bench.translated([program], [*daemon.options(), "--trace-instruction=" + str(bench.folder / "trace")]).same_as(
            native, "traced")
        expect(not daemon.connections, "a worker that wants nothing has connected")


def no_daemon(bench: Bench):
    """No socket, a file, a socket where nobody listens: as without a cache, and at once."""
    program = bench.program("hello")
    native = bench.native([program])
    (bench.folder / "file").write_text("")
    (bench.folder / "xdg/phybin").mkdir(parents=True)
    daemon = ModelDaemon(bench.folder)
    daemon.socket.close()
    for path in ("/nonexistent/socket", bench.folder / "file", bench.folder, daemon.path):
        start = time.monotonic()
        result = bench.translated([program], [f"--daemon-socket={path}", "--daemon-timeout=10000"])
        result.same_as(native, str(path))
        expect(time.monotonic() - start < 5, f"{path}: waited")
        expect(result.translated > 1000, "nothing was translated")
    bench.translated([program], environment={"XDG_RUNTIME_DIR": str(bench.folder / "xdg")}).same_as(native, "empty folder")


def own_daemon(bench: Bench):
    """Without --daemon-socket: the one in XDG_RUNTIME_DIR, where there is no daemon of the system."""
    if os.path.exists("/run/phybin/phybind.sock"):
        return
    program = bench.program("hello")
    (bench.folder / "phybin").mkdir()
    with ModelDaemon(bench.folder / "phybin") as daemon:
        (bench.folder / "phybin/daemon.sock").rename(bench.folder / "phybin/phybind.sock")
        environment = {"XDG_RUNTIME_DIR": str(bench.folder), "PHYBIN_OPTIONS": "--daemon-timeout=10000"}
        bench.translated([program], environment=environment).same_as(bench.native([program]), "own daemon")
        expect(len(daemon.workers) == 1, "not found")


def children(bench: Bench):
    """A child of fork keeps silent; a program that is started says hello itself."""
    program = bench.program("children")
    native = bench.native([program, bench.program("hello")])
    with ModelDaemon(bench.folder) as daemon:
        result = bench.translated([program, bench.program("hello")], daemon.options())
        result.same_as(native, "children")
        expect(len(daemon.workers) == 3, f"{len(daemon.workers)} workers")
        first = daemon.workers[0]
        expect(first.counters()["guest_instructions"] in [int(line.split()[1]) for line in result.stats],
               "a child has counted in its parent's page")


def few_descriptors(bench: Bench):
    """Where the program runs without a daemon, it runs with one."""
    program = bench.program("hello")
    native = bench.native([program])
    for limit in (16, 10, 8, 6):
        alone = bench.translated([program], before=f"ulimit -n {limit}")
        if alone.status == native.status:
            with ModelDaemon(bench.folder) as daemon:
                bench.translated([program], daemon.options(), before=f"ulimit -n {limit}").same_as(
                    native, f"{limit} descriptors")
        else:
            expect(limit < 10, f"{limit} descriptors: status {alone.status}, {alone.err}")


def descriptors_are_hidden(bench: Bench):
    """The guest neither sees the connection nor can it close it."""
    program = bench.program("descriptors")
    native = bench.native([program])
    with ModelDaemon(bench.folder) as daemon:
        bench.translated([program], daemon.options()).same_as(native, "descriptors")
        expect(len(daemon.workers[0].paths) >= 4, "what was mapped after all descriptors were closed was not announced")


TESTS = [cold_start, policies, no_daemon, own_daemon, children, few_descriptors, descriptors_are_hidden]
