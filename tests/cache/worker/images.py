"""Programs that run on images: warm as cold as natively; and everything after which an image must not be used."""

import os
import struct
import subprocess
import threading
import time
from pathlib import Path

from harness import Bench, Result, emulation, expect, shorten
from model_daemon import OFF, ON, READ, ModelDaemon

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent.parent / "programs"

# Of ImageHeader (proto/image_format.h).
HEADER_FIELDS = {
    "format": (8, "I"), "header_bytes": (12, "I"), "translator_build": (48, "B"), "host_features": (80, "I"),
    "code_options": (84, "I"), "module_bytes": (88, "Q"), "text_file_offset": (96, "Q"), "text_address": (104, "Q"),
    "text_bytes": (112, "Q"), "image_address": (120, "Q"), "file_bytes": (128, "Q"), "slots_offset": (136, "Q"),
    "slots_end": (144, "Q"), "index_offset": (152, "Q"), "index_mask": (160, "Q"), "code_offset": (168, "Q"),
    "code_bytes": (176, "Q"), "first_slot": (184, "Q"), "slot_pairs": (192, "Q"), "places_offset": (200, "Q"),
    "places": (208, "Q"), "entries": (216, "Q"),
}
TSC_SHIFT_BIT = 27  # proto::kTscShiftBit
UNALIGNED_ACCESS = 1 << 31  # proto::kUnalignedAccess


class Warm:
    """A daemon that has images of what the command has run so far."""

    def __init__(self, bench: Bench, command, options=(), *, before="", environment=None, policy=ON):
        self.bench, self.command, self.more = bench, command, {"before": before, "environment": environment}
        self.worker_options = list(options)
        self.entries: dict[str, set[int]] = {}
        self.native = bench.native(command, environment=environment)
        self.daemon = ModelDaemon(bench.folder, policy=policy)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daemon.stop()

    def run(self, what: str, options=(), timeout=120) -> Result:
        result = self.bench.translated(self.command, [*self.daemon.options(), *self.worker_options, *options],
                                       timeout=timeout, **self.more)
        result.same_as(self.native, what)
        return result

    def make_images(self, compiler_options=(), barriers=True) -> None:
        """Of all that the workers have told so far. Without `barriers`, places of unaligned accesses are left out."""
        changed = set()
        for worker in self.daemon.workers:
            for module, offset in worker.ring():
                path = worker.paths.get(module)
                if offset >= UNALIGNED_ACCESS and not barriers:
                    continue
                if path and offset not in self.entries.setdefault(path, set()):
                    self.entries[path].add(offset)
                    changed.add(path)
        for path in sorted(changed):
            image = self.bench.folder / f"{os.path.basename(path)}.{len(self.daemon.images)}.image"
            listing = self.bench.folder / "entries"
            listing.write_text("".join(f"{offset:x}\n" for offset in sorted(self.entries[path])))
            command = [*emulation(""), str(self.bench.phybin), "--compile-image", path, "--entries", str(listing),
                       "--output", str(image), *compiler_options]
            made = subprocess.run(command, capture_output=True)
            expect(made.returncode == 0, f"no image of {path}: {shorten(made.stderr)}")
            self.daemon.images[Path(path)] = image

    def warm_up(self, rounds=3, compiler_options=()) -> Result:
        """Runs until images hold most of what is needed; the result is the last run's."""
        cold = self.run("cold")
        expect(cold.attached == 0, "an image was attached before there was one")
        for i in range(rounds):
            self.make_images(compiler_options)
            warm = self.run(f"warm, round {i + 1}")
        expect(warm.attached > 0, "no image was attached")
        expect(warm.translated * 10 < cold.translated,
               f"{warm.translated} of {cold.translated} instructions are translated with images")
        return warm


def warm(bench: Bench, command, options=(), **more) -> Result:
    with Warm(bench, command, options, **more) as run:
        return run.warm_up()


def existing(bench: Bench, name: str, flags="-O1") -> Path:
    """One of tests/programs."""
    source = PROGRAMS / name
    if not source.exists():
        source = PROGRAMS / "sources" / name
    path = bench.programs / f"existing-{source.stem}{''.join(flags.split())}"
    if not path.exists():
        subprocess.run(["gcc", "-w", *flags.split(), "-o", path, source, "-lpthread", "-lm"], check=True)
    return path


# ---- Kinds of programs --------------------------------------------------------------------------------------------

def static(bench: Bench):
    expect(warm(bench, [existing(bench, "static.c", "-O2 -static"), "a"]).attached == 1, "images")


def static_pie(bench: Bench):
    expect(warm(bench, [existing(bench, "static.c", "-O2 -static-pie"), "a"]).attached == 1, "images")


def dynamic(bench: Bench):
    expect(warm(bench, [existing(bench, "static.c", "-O2"), "a"]).attached >= 3, "images")


def not_position_independent(bench: Bench):
    expect(warm(bench, [existing(bench, "static.c", "-O2 -no-pie"), "a"]).attached >= 3, "images")


def one_segment(bench: Bench):
    """Headers, text and constants in one segment, as older linkers had it."""
    expect(warm(bench, [existing(bench, "static.c", "-O2 -Wl,-z,noseparate-code"), "a"]).attached >= 3, "images")


def empty(bench: Bench):
    """Warm, nothing is left to translate. What is translated ahead shows only later that it is an entry, too."""
    with Warm(bench, [bench.program("hello")]) as run:
        result = run.warm_up(7)
    expect(result.translated < 20, f"{result.translated} instructions are translated")


def ordered(bench: Bench):
    """Under the x86 memory model the other half of the images is used."""
    result = warm(bench, [bench.program("hello")], ["--memory-model=tso"])
    expect(result.translated < 1000, f"{result.translated} instructions are translated")


def threads(bench: Bench):
    """The memory model changes while the images are in use; they stay."""
    result = warm(bench, [existing(bench, "threads.c")])
    expect(result.attached >= 3, f"{result.attached} images at the end")


def threads_static(bench: Bench):
    warm(bench, [existing(bench, "threads.c", "-O1 -static")])


def control_flow(bench: Bench):
    warm(bench, [existing(bench, "control_flow.c")])


def long_double(bench: Bench):
    warm(bench, [existing(bench, "long_double.c")])


def return_faults(bench: Bench):
    warm(bench, [existing(bench, "return_faults.c")])


def signals(bench: Bench):
    """Faults with their exact state, signals in loops, death."""
    for name in ("signals_synchronous.c", "signals_asynchronous.c", "signals_loops.c"):
        bench.begin()
        warm(bench, [existing(bench, name)])


def death(bench: Bench):
    """Programs that die of a signal."""
    for command in (["/bin/bash", "-c", "kill -SEGV $$"], [existing(bench, "signals.c")],
                    [existing(bench, "signals_death.c")]):
        bench.begin()
        with Warm(bench, command) as run:
            run.run("cold")
            run.make_images()
            before = len(run.daemon.workers)
            run.run("warm")
            expect(run.daemon.workers[before].counters()["images"] >= 3, "no images were attached")


def self_modifying(bench: Bench):
    """Code that the program writes is translated privately beside the images."""
    with Warm(bench, [existing(bench, "self_modifying.c")]) as run:
        run.run("cold")
        run.make_images()
        expect(run.run("warm").attached > 0, "no image was attached")


def processes(bench: Bench):
    """fork, vfork, threads, waiting; children use the images that they inherit."""
    warm(bench, [existing(bench, "processes.c")])


def children(bench: Bench):
    command = [bench.program("children"), bench.program("hello")]
    result = warm(bench, command)
    expect(len(result.stats) == 4 and all(" 0 images" not in line for line in result.stats),
           "a child without images: " + "".join(result.stats))


def shell(bench: Bench):
    warm(bench, ["/bin/bash", "-c", "echo $((6*7)); (exit 3); echo $?; for i in 1 2 3; do (echo $i); done; "
                 "x=$(printf %s sub); echo $x; trap 'echo trapped' USR1; kill -USR1 $$; exit 17"])


def python(bench: Bench):
    text = "import json, re; print(json.dumps([i * i for i in range(20)]), re.sub('a+', 'b', 'caat'), 0.1 + 0.2)"
    warm(bench, ["/usr/bin/python3", "-S", "-c", text])


def unaligned(bench: Bench):
    """Accesses that fault for alignment: the process leaves an image without barriers there and goes on with its own
    code; the place goes into the profile, and the next image has barriers."""
    with Warm(bench, [bench.program("unaligned_often")], ["--memory-model=tso"]) as run:
        cold = run.run("cold")
        run.make_images(barriers=False)
        result = run.run("warm, image without barriers")
        # The program's own image is left; the libraries' stay.
        expect(result.attached == len(run.daemon.images) - 1, f"{result.attached} images at the end")
        faults = result.count("alignment faults")
        expect(64 <= faults < 1000, f"{faults} alignment faults")
        expect(result.translated * 4 < cold.translated, "the libraries' images are of no use")
        run.make_images()
        result = run.run("warm, image with barriers")
        expect(result.attached == len(run.daemon.images), f"{result.attached} images with barriers")
        faults = result.count("alignment faults")
        expect(faults < 64, f"{faults} alignment faults with barriers")
        result = run.run("weak", ["--memory-model=weak"])
        expect(result.attached == len(run.daemon.images), f"{result.attached} images under the weak model")


def unaligned_and_locked(bench: Bench):
    with Warm(bench, [existing(bench, "unaligned.c")]) as run:
        for _ in range(2):
            run.run("cold")
            run.make_images()
        run.run("warm")


# ---- Libraries ----------------------------------------------------------------------------------------------------

def loaded_libraries(bench: Bench):
    """Loaded, unloaded, loaded again."""
    result = warm(bench, [bench.program("loader")])
    expect(result.translated < 1000, f"{result.translated} instructions are translated")


def loaded_twice(bench: Bench):
    """The same library in two namespaces: two mappings of its image with slots of their own."""
    result = warm(bench, [bench.program("two_namespaces")])
    expect(result.attached >= 6, f"{result.attached} images")


def large_alignment(bench: Bench):
    """A library with 2 MiB alignment: the dynamic linker reserves room without a file first."""
    library = bench.program("libaligned.so", "library", "-O1 -shared -fPIC -Wl,-z,max-page-size=0x200000")
    program = bench.program("uses_library")
    with Warm(bench, [program, library]) as run:
        run.warm_up()
        expect(library in run.daemon.images, "no image of the library")
        result = run.run("again")
        expect(result.attached == len(run.daemon.images), f"{result.attached} of {len(run.daemon.images)} images")


def shared_by_programs(bench: Bench):
    """Two programs, one library: the second finds what the first has left."""
    with Warm(bench, [bench.program("hello")]) as run:
        run.warm_up()
        command = [existing(bench, "static.c", "-O2"), "a"]
        alone = bench.translated(command)
        result = bench.translated(command, run.daemon.options())
        result.same_as(bench.native(command), "the second program")
        expect(result.attached == 2 and result.translated * 2 < alone.translated,
               f"{result.translated} of {alone.translated} instructions, {result.attached} images")


def heap_behind_program(bench: Bench):
    """A large heap keeps its room, whatever kind the program is."""
    for flags in ("-O1 -no-pie -static", "-O1 -static-pie", "-O1"):
        bench.begin()
        program = bench.program("heap" + flags.replace(" ", ""), "heap", flags)
        warm(bench, [program], environment={"PHYBIN_HEAP_SIZE": "4G"})


def sanitizer(bench: Bench):
    """A program with a shadow of its memory at fixed addresses, which emulators take minutes to map."""
    if os.uname().machine != "aarch64":
        return
    with Warm(bench, [bench.program("sanitized", "hello", "-O1 -fsanitize=address -fno-omit-frame-pointer")],
              environment={"ASAN_OPTIONS": "detect_leaks=0"}) as run:
        run.run("cold")
        run.make_images()
        run.run("warm")


# ---- What the program does to an image ------------------------------------------------------------------------------

def text_changes(bench: Bench):
    """Text that is made writable, replaced, moved, unmapped; and mappings onto the image itself."""
    with Warm(bench, [bench.program("changes_text")]) as run:
        run.run("cold")
        for _ in range(2):
            run.make_images()
            result = run.run("warm")
        expect(result.attached > 0, "no image was attached")


def changed_by_threads(bench: Bench):
    """A library goes while other threads run on its image."""
    with Warm(bench, [bench.program("unloads_while_running")]) as run:
        for _ in range(3):
            run.run("run")
            run.make_images()
        run.run("warm")


def maps_hide_images(bench: Bench):
    """/proc/self/maps shows the program's mappings and nothing else."""
    with Warm(bench, [bench.program("maps")]) as run:
        cold = run.run("cold")
        run.make_images()
        result = run.run("warm")
        expect(result.attached >= 3, f"{result.attached} images")
        expect(result.out == cold.out, "other mappings")


# ---- What the daemon does -------------------------------------------------------------------------------------------

def policy_changes(bench: Bench):
    """off and on again while the program runs: at once, and without harm."""
    command = [bench.program("works_for_a_while")]
    with Warm(bench, command) as run:
        run.run("cold")
        run.make_images()
        stop = threading.Event()

        def switch():
            while not stop.wait(0.02):
                run.daemon.set_policy(OFF)
                time.sleep(0.02)
                run.daemon.set_policy(READ)

        thread = threading.Thread(target=switch)
        thread.start()
        for i in range(3):
            run.run(f"switching, {i}")
        stop.set()
        thread.join()
        run.daemon.set_policy(OFF)
        expect(run.run("off").attached == 0, "an image was attached under the policy off")
        run.daemon.set_policy(READ)
        before = len(run.daemon.workers)
        expect(run.run("read").attached >= 3, "no image under the policy read")
        expect(not run.daemon.workers[before].ring(), "something was noted under the policy read")


def policy_off_for_a_running_program(bench: Bench):
    """The program says when it has started; then the policy changes, and nothing of the images is used any more."""
    command = [bench.program("waits")]
    with Warm(bench, command) as run:
        run.native = bench.native(command, stdin=b"x")
        run.daemon.stop()
        for policy, expected in ((ON, True), (OFF, False)):
            with ModelDaemon(bench.folder, run.daemon.images) as daemon:
                run.daemon = daemon
                process = subprocess.Popen([*emulation(""), str(bench.phybin), "--stats", *daemon.options(), command[0]],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                expect(process.stdout.readline() == b"started\n", "it does not start")
                daemon.set_policy(policy)
                out, err = process.communicate(b"x", timeout=60)
                result = Result(process.returncode, b"started\n" + out, err)
                result.same_as(run.native, f"policy {policy}")
                if policy == ON:
                    run.make_images()
                else:
                    expect(len(daemon.images) >= 3 and result.attached == 0, f"{result.attached} images")


def late_images(bench: Bench):
    """Images that come when the program runs already are attached when the next module is mapped."""
    command = [bench.program("loader")]
    with Warm(bench, command) as run:
        run.run("cold")
        run.make_images()
        images = run.daemon.images
        run.daemon.stop()

        class Late(ModelDaemon):
            def module_met(self, connection, worker, number):
                if len(worker.paths) == 3:
                    self.send_images(connection, images)

        with Late(bench.folder) as daemon:
            run.daemon = daemon
            result = run.run("late")
            expect(result.attached >= 2, f"{result.attached} images")


def other_options(bench: Bench):
    """Images of other options, host features or counters are not used."""
    with Warm(bench, [bench.program("hello")]) as run:
        run.warm_up(1)
        for option in ("--fast-math", "--no-sse-check"):
            expect(run.run(option, [option]).attached == 0, f"used with {option}")
        expect(run.run("prefetch", ["--prefetch-depth=0"]).attached > 0, "not used with another depth")
    for options in (["--fast-math"], ["--no-sse-check"]):
        bench.begin()
        with Warm(bench, [bench.program("hello")], options) as run:
            run.warm_up(1, options)
    bench.begin()
    with Warm(bench, [bench.program("hello")]) as run:
        run.run("cold")
        run.make_images(["--host-features=lse,crc32"])
        expect(run.run("features").attached == 0, "used with other host features")
    bench.begin()
    with Warm(bench, [bench.program("hello")]) as run:
        run.warm_up(1)
        offset, kind = HEADER_FIELDS["host_features"]
        image = next(iter(run.daemon.images.values())).read_bytes()
        own = struct.unpack_from("<" + kind, image, offset)[0] >> TSC_SHIFT_BIT
        for shift, used in ((own ^ 1, False), (own ^ 16, False), (own, True)):
            run.entries.clear()
            run.make_images([f"--tsc-shift={shift}"])
            expect((run.run("shift").attached > 0) == used, f"shift {shift} of a counter of {own}")


def file_changes(bench: Bench):
    """A program that is replaced in place has no image any more."""
    program = bench.folder / "changing"
    program.write_bytes(bench.program("hello").read_bytes())
    program.chmod(0o755)
    with Warm(bench, [program]) as run:
        run.warm_up(1)
        # Another file of the same size at the same place.
        offered = dict(run.daemon.images)
        run.daemon.stop()
        with ModelDaemon(bench.folder, offered) as daemon:
            message = daemon.offers()
            for fd in message[1]:
                os.close(fd)
            data = bytearray(program.read_bytes())
            place = data.find(b"%d %.3f %s\n")
            data[place : place + 2] = b"%x"
            with open(program, "r+b") as file:
                file.write(data)
            daemon.offers = lambda: (message[0], [os.open(p, os.O_RDONLY) for p in offered.values()])
            run.daemon, run.native = daemon, bench.native([program])
            result = run.run("changed in place")
            expect(result.attached == len(offered) - 1, f"{result.attached} images")


def damaged_headers(bench: Bench):
    """Each field of the header with values that are wrong, and headers that are cut off: private translations."""
    with Warm(bench, [bench.program("hello-static", "hello", "-O1 -static")]) as run:
        run.warm_up(1)
        (module, image), = run.daemon.images.items()
        good = image.read_bytes()
        whole = 2**64
        for name, (offset, layout) in HEADER_FIELDS.items():
            limit = 256 ** struct.calcsize(layout)
            (value,) = struct.unpack_from("<" + layout, good, offset)
            wrong = {limit - 1, limit // 2, (value + 1) % limit, (value + limit // 2) % limit}
            if name in ("slot_pairs", "places", "code_bytes", "entries", "image_address", "text_address", "text_bytes"):
                wrong.discard((value + 1) % limit)  # may still be a good header
            if name in ("image_address", "text_address"):
                wrong.add(whole - 65536)
            damaged = image.with_suffix(".damaged")
            for number in sorted(wrong):
                data = bytearray(good[: 4096])
                struct.pack_into("<" + layout, data, offset, number)
                damaged.write_bytes(bytes(data) + good[4096:])
                run.daemon.images = {module: damaged}
                expect(run.run(f"{name} = {number:#x}").attached == 0, f"attached with {name} = {number:#x}")
        for size in (0, 1, 8, 511, 4096, len(good) - 65536):
            damaged.write_bytes(good[:size])
            expect(run.run(f"{size} bytes").attached == 0, f"attached with {size} bytes")
        damaged.write_bytes(good)
        expect(run.run("good").attached == 1, "the good one was not attached")


def wrong_module(bench: Bench):
    """An image that is offered for another file: its text is elsewhere."""
    with Warm(bench, [bench.program("hello")]) as run:
        run.warm_up(1)
        modules = list(run.daemon.images)
        paths = list(run.daemon.images.values())
        run.daemon.images = dict(zip(modules, paths[1:] + paths[:1]))
        expect(run.run("exchanged").attached == 0, "an image of another module was attached")


def place_is_taken(bench: Bench):
    """A mapping of a library has something behind it where the image would go: it is translated privately."""
    with Warm(bench, [bench.program("maps_by_hand")]) as run:
        run.warm_up()
        result = run.run("again")
        # Program, dynamic linker, libc and the library three times, once without an image.
        expect(result.attached == 6, f"{result.attached} images")


def places_fill_up(bench: Bench):
    """Mappings of all sizes between loading and unloading."""
    result = warm(bench, [bench.program("takes_places")])
    expect(result.attached >= 3, f"{result.attached} images")


TESTS = [static, static_pie, dynamic, not_position_independent, one_segment, empty, ordered, threads, threads_static,
         control_flow, long_double, return_faults, signals, death, self_modifying, processes, children, shell, python, unaligned,
         unaligned_and_locked, loaded_libraries, loaded_twice, large_alignment, shared_by_programs, heap_behind_program,
         sanitizer, text_changes, changed_by_threads, maps_hide_images, policy_changes,
         policy_off_for_a_running_program, late_images, other_options, file_changes, damaged_headers, wrong_module,
         place_is_taken, places_fill_up]
