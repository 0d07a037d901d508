"""Images, from the entry points that workers met to what is offered to the next ones: made, kept, refused."""

import hashlib
import os
import shutil
import signal
import sqlite3
import struct
import time
import unittest

from cache_daemon import BUILD_ID, DaemonTest, entry_points, meet
from phybind import IMAGES, MODULE, file_key

TSC_SHIFT = 27  # from this bit on, the host features are a number


class Offers(DaemonTest):
    def test_made_and_offered(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.assertEqual(self.run_program(daemon, program), [])
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (1, 0), daemon.log.read_text())
        self.assertEqual(self.run_program(daemon, program), [file_key(program)])
        # Nothing new was met: nothing is made.
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (1, 0))

    def test_image_is_for_the_content(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        header = os.pread(self.offered(daemon, program)[0], 256, 0)
        self.assertEqual(header[:8], b"PhyBinIm")
        self.assertEqual(header[16:48], hashlib.sha256(program.read_bytes()).digest())
        self.assertEqual(header[48:80], BUILD_ID)
        # The same content in another file, and another content in the same file.
        copy = self.program(daemon, name="copy")
        self.assertEqual(self.run_program(daemon, copy, points=[]), [file_key(copy)])
        with open(program, "r+b") as file:
            file.seek(0, 2)
            file.write(b"changed")
        self.assertEqual(self.run_program(daemon, program, points=[]), [])
        shutil.copy(copy, program)
        self.assertEqual(self.run_program(daemon, program, points=[]), [file_key(program)])

    def test_any_difference_of_identity(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        self.assertEqual(len(self.offered(daemon, program)), 1)
        for other in ({"build": bytes(32)}, {"features": 1}, {"features": 4 << TSC_SHIFT}, {"options": 1},
                      {"options": 2}):
            self.assertEqual(self.offered(daemon, program, **other), [], other)

    def test_features_and_options_reach_the_compiler(self):
        daemon = self.daemon()
        program = self.program(daemon)
        for features, options in ((0, 0), (0b100001, 1), (6 << TSC_SHIFT | 0b10, 0), (31 << TSC_SHIFT | 0xfff, 3)):
            self.make_image(daemon, program, features=features, options=options)
            header = os.pread(self.offered(daemon, program, features=features, options=options)[0], 256, 0)
            self.assertEqual(struct.unpack_from("<II", header, 80), (features, options))
        self.assertEqual(self.jobs(daemon), (4, 0))

    def test_module_of_a_running_worker(self):
        daemon = self.daemon()
        program, library = self.program(daemon, wait=False), self.program(daemon, "/bin/false", "library")
        with self.worker(daemon, program) as worker:
            with open(library, "rb") as file:
                worker.send(MODULE, struct.pack("<II", 1, 0) + file_key(library), [file.fileno()])
            meet(worker, 1, entry_points(library))
            self.settle(daemon)
            kind, _, content, files = worker.receive()
            self.assertEqual((kind, len(files)), (IMAGES, 1))
            self.assertEqual(content[8:8 + 40], file_key(library))
            os.close(files[0])
        # The next run is offered it at once, and need not show the file to say what is missing in it.
        with self.worker(daemon, program) as worker:
            self.assertEqual([offer["key"] for offer in worker.offers], [file_key(library)])
            worker.send(MODULE, struct.pack("<II", 7, 0) + file_key(library))
            meet(worker, 7, entry_points(library, 120))
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (2, 0), daemon.log.read_text())

    def test_entry_points_of_a_killed_worker(self):
        """The ring outlives its worker, and what was met before the file was known counts as well."""
        daemon = self.daemon()
        program = self.program(daemon, wait=False)
        child = os.fork()
        if child == 0:
            worker = self.worker(daemon, program)
            meet(worker, 0, entry_points(program))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (1, 0), daemon.log.read_text())

    def test_entry_points_outside_of_the_file(self):
        daemon = self.daemon()
        program = self.program(daemon, wait=False)
        self.run_program(daemon, program, points=[0xffffffff, program.stat().st_size] + entry_points(program))
        self.settle(daemon)
        self.assertEqual(self.status(daemon)["profile"]["entry_points"], 40)


class Users(DaemonTest):
    def test_own_image_then_everyones(self):
        daemon = self.daemon()
        program = self.program(daemon, owner=1000)
        self.make_image(daemon, program, uid=1000)
        self.assertEqual([path.name.split(".")[1] for path in self.image_files(daemon)], ["1000"])
        # Who has not shown the file before gets nothing of it. Now he has, and it has two users.
        self.assertEqual(self.run_program(daemon, program, uid=1001), [])
        self.settle(daemon)
        self.assertEqual(sorted(path.name.split(".")[1] for path in self.image_files(daemon)), ["1000", "all"])
        for uid in (1000, 1001, 1002):
            self.assertEqual(self.run_program(daemon, program, points=[], uid=uid), [file_key(program)], uid)

    def test_roots_files_are_everyones(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program, uid=1000)
        self.assertEqual([path.name.split(".")[1] for path in self.image_files(daemon)], ["all"])
        self.assertEqual(self.run_program(daemon, program, points=[], uid=1001), [file_key(program)])

    def test_what_others_may_write_is_not_roots(self):
        daemon = self.daemon()
        program = self.program(daemon, wait=False)
        program.chmod(0o775)
        time.sleep(2.2)
        self.make_image(daemon, program, uid=1000)
        self.assertEqual([path.name.split(".")[1] for path in self.image_files(daemon)], ["1000"])

    def test_images_cannot_be_written_by_users(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program, uid=1000)
        image = self.offered(daemon, program, uid=1000)[0]
        with self.assertRaises(OSError):
            os.pwrite(image, b"x", 0)
        child = os.fork()
        if child == 0:
            os.setresuid(1000, 1000, 1000)
            try:
                os.open(f"/proc/self/fd/{image}", os.O_RDWR)
            except PermissionError:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Persistence(DaemonTest):
    def restart(self, daemon, number=signal.SIGTERM):
        daemon.stop(number)
        daemon.start()
        self.settle(daemon)

    def test_restart_and_kill(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.restart(daemon, number)
            self.assertEqual(self.run_program(daemon, program), [file_key(program)])
            self.settle(daemon)
            self.assertEqual(self.jobs(daemon), (0, 0))

    def test_profile_survives(self):
        """What was met before a restart is in the image that is made after it."""
        daemon = self.daemon("--compiler=/bin/false")
        program = self.program(daemon)
        self.run_program(daemon, program)
        self.settle(daemon)
        self.assertEqual(self.status(daemon)["profile"]["entry_points"], 40)
        daemon.stop()
        daemon.options = daemon.options[:1]
        daemon.start()
        self.settle(daemon)
        self.run_program(daemon, program, points=[])
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (1, 0), daemon.log.read_text())

    def test_killed_at_each_step_of_publishing(self):
        for place in ("image-written", "image-synced", "image-renamed", "directory-synced", "row-written",
                      "old-removed"):
            with self.subTest(place):
                daemon = self.daemon()
                program = self.program(daemon)
                self.make_image(daemon, program)
                before = self.image_files(daemon)
                daemon.stop()
                options = daemon.options
                daemon.options += (f"--fault-point={place}",)
                daemon.start()
                self.run_program(daemon, program, points=entry_points(program, 120))
                try:
                    self.settle(daemon)
                except (OSError, IndexError):
                    pass
                self.assertEqual(daemon.process.wait(30), -signal.SIGKILL)
                daemon.options = options
                daemon.start()
                self.settle(daemon)
                # Old image or new one, whole, and nothing else.
                self.assertEqual(self.run_program(daemon, program, points=[]), [file_key(program)])
                files = self.image_files(daemon)
                self.assertEqual(len(files), 1)
                self.assertEqual(files != before, place in ("row-written", "old-removed"))
                self.assertEqual(list((daemon.cache / "new").iterdir()), [])
                # And the profile is there: what was missing comes.
                self.settle(daemon)
                self.assertEqual(self.jobs(daemon)[1], 0)
                daemon.stop()

    def test_damaged_image(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        path = self.image_files(daemon)[0]
        good = path.read_bytes()

        def bad(content):
            daemon.stop()
            path.chmod(0o600)
            path.write_bytes(content)
            daemon.start()
            self.settle(daemon)
            self.assertEqual(self.run_program(daemon, program), [])
            self.settle(daemon)
            self.assertEqual(self.jobs(daemon), (1, 0), daemon.log.read_text())
            self.assertEqual(self.image_files(daemon)[0].read_bytes(), good)

        bad(good[:-1])
        bad(good[:100000] + b"!" + good[100001:])
        bad(bytes(len(good)))
        # While the daemon is there: its stat data tells.
        path.chmod(0o600)
        path.write_bytes(good[:100000] + b"!" + good[100001:])
        self.assertEqual(self.run_program(daemon, program, points=[]), [])
        self.settle(daemon)
        self.assertIn("damaged", daemon.log.read_text())

    def test_damaged_index(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        daemon.stop()
        (daemon.cache / "index.sqlite").write_bytes(b"\xff" * 50000)
        daemon.start()
        self.settle(daemon)
        self.assertIn("damaged", daemon.log.read_text())
        self.assertEqual(self.status(daemon)["cache"]["images"], 1)
        self.run_program(daemon, program, points=[])
        self.assertEqual(self.run_program(daemon, program, points=[]), [file_key(program)])
        self.settle(daemon)
        self.assertEqual(self.jobs(daemon), (0, 0))

    def test_rows_without_files_and_files_without_rows(self):
        daemon = self.daemon()
        program = self.program(daemon)
        self.make_image(daemon, program)
        daemon.stop()
        path = self.image_files(daemon)[0]
        stray = path.with_name("0" * 64 + ".all.0.img")
        path.rename(stray)
        (daemon.cache / "new/5.img").write_bytes(b"half")
        daemon.start()
        self.settle(daemon)
        self.assertEqual(self.image_files(daemon), [])
        self.assertEqual(list((daemon.cache / "new").iterdir()), [])
        self.assertEqual(self.status(daemon)["cache"]["images"], 0)

    def test_least_recently_used_goes_first(self):
        daemon = self.daemon(config="cache_size = 1M\n")
        programs = [self.program(daemon, name=f"p{i}", mark=bytes([i]), wait=False) for i in range(8)]
        time.sleep(2.2)
        size = None
        for program in programs:
            self.make_image(daemon, program)
            size = size or self.image_files(daemon)[0].stat().st_size
            time.sleep(1.1)
            # The first one stays in use.
            self.assertEqual(self.run_program(daemon, programs[0], points=[]), [file_key(programs[0])])
        room = (1 << 20) // size
        self.assertLess(room, len(programs))
        self.assertLessEqual(self.status(daemon)["cache"]["bytes"], 1 << 20)
        kept = [program for program in programs if self.run_program(daemon, program, points=[])]
        self.assertEqual(kept, [programs[0]] + programs[len(programs) - room + 1:])
        # The index says so too.
        daemon.stop()
        with sqlite3.connect(daemon.cache / "index.sqlite") as index:
            self.assertEqual(index.execute("SELECT count(*) FROM images").fetchone()[0], room)


if __name__ == "__main__":
    unittest.main()
