"""phybinctl maintenance: which images it removes, and that cleaning up /tmp cannot be turned against anybody."""

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from cache_test import Cache
from hanging_files import HangingFiles
from phybind import PHYBINCTL
from policy_test import ALICE, AS_OTHERS, BOB

DAY = 86400


class FakeDaemon:
    """Answers maintenance's requests about images that need not exist."""

    def __init__(self, images, build="b" * 64, problems=(), purge_error=None):
        self.images, self.build, self.problems, self.purge_error = images, build, list(problems), purge_error
        self.requests = []
        self.folder = tempfile.mkdtemp(prefix="phybind-fake-")
        self.socket = self.folder + "/socket"

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.socket)
        self.listener.listen(4)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.folder)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                channel, _ = self.listener.accept()
                with channel:
                    while text := channel.recv(1 << 16):
                        request = json.loads(text)
                        self.requests.append(request)
                        channel.send(json.dumps(self.answer(request)).encode())

    def answer(self, request):
        name = request["request"]
        if name == "status":
            return {"ok": True, "translator_build": self.build}
        if name == "cache-verify":
            return {"ok": True, "verified": len(self.images), "problems": self.problems}
        if name == "cache-list":
            return {"ok": True, "images": self.images}
        if self.purge_error:
            return {"ok": False, "error": self.purge_error}
        gone = [image for image in self.images if image["id"] in request["ids"]]
        self.images = [image for image in self.images if image["id"] not in request["ids"]]
        return {"ok": True, "removed": len(gone), "removed_bytes": sum(image["bytes"] for image in gone)}

    def names(self):
        return [request["request"] for request in self.requests]


class Maintenance(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="phybin-maintenance-"))
        self.folder.chmod(0o755)
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.tmp.chmod(0o1777)
        self.addCleanup(shutil.rmtree, self.folder)

    def run_ctl(self, *arguments, uid=None):
        command = [PHYBINCTL, "maintenance", f"--tmp={self.tmp}", *map(str, arguments)]
        if uid is not None:
            command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *command]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)


class Images(Maintenance):
    def image(self, number, path, content=None, age=8 * DAY, build="b" * 64, created=None):
        """One that was last used `age` ago. `content`: of the module when it was made, if it is not what it is now."""
        if content is None:
            content = path.read_bytes() if path.exists() else b""
        used = int(time.time()) - age
        return {"id": number, "module": str(path), "module_sha256": hashlib.sha256(content).hexdigest(), "bytes": 1000,
                "translator_build": build, "created_at": used if created is None else created, "used_at": used}

    def maintain(self, images, *arguments, status=0, **fake):
        with FakeDaemon(images, **fake) as daemon:
            run = self.run_ctl(f"--socket={daemon.socket}", "--json", *arguments)
            self.assertEqual(run.returncode, status, run.stderr)
            return json.loads(run.stdout)["images"], [image["id"] for image in daemon.images], daemon

    def file(self, name, content=b"program"):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def test_what_is_removed(self):
        same, changed, fifo = self.file("same"), self.file("changed", b"new"), self.folder / "fifo"
        os.mkfifo(fifo)
        gone, hidden = self.folder / "gone", self.folder / "empty/gone"
        (self.folder / "empty").mkdir()
        images = [
            self.image(1, same),
            self.image(2, changed, b"old"),
            self.image(3, changed, b"old", age=6 * DAY),  # somebody elsewhere may have the old one
            self.image(4, gone),
            self.image(5, gone, age=6 * DAY),
            self.image(6, hidden),  # a folder with nothing in it does not tell
            self.image(7, self.folder / "no/such/folder"),
            self.image(8, fifo, b""),
            self.image(9, same, build="c" * 64, age=0),
            self.image(10, same, age=91 * DAY),
            self.image(11, same, age=89 * DAY),
            # Unchanged since before it was made, by its ctime: not read.
            self.image(12, changed, b"old", created=int(time.time()) + 10),
            self.image(13, Path("relative"), b"old"),
        ]
        answer, left, daemon = self.maintain(images)
        self.assertEqual(left, [1, 3, 5, 6, 7, 11, 12, 13])
        self.assertEqual(answer["causes"], {"module_changed": 2, "module_gone": 1, "other_build": 1, "unused": 1})
        self.assertEqual((answer["removed"], answer["removed_bytes"], answer["verified"]), (5, 5000, 13))
        self.assertEqual(daemon.names()[0], "cache-verify")

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "needs root and FUSE")
    def test_file_system_that_does_not_answer(self):
        with HangingFiles(self.folder / "hanging") as hanging:
            images = [self.image(1, hanging.file, b"old"), self.image(2, hanging.folder / "other", b"old"),
                      self.image(3, self.folder / "gone", b"old")]
            began = time.monotonic()
            answer, left, _ = self.maintain(images)
            self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(left, [1, 2])
        self.assertEqual(answer["causes"], {"module_gone": 1})

    def test_age_is_an_option(self):
        same = self.file("same")
        _, left, _ = self.maintain([self.image(1, same, age=3 * DAY), self.image(2, same, age=DAY)], "--older-than=2d")
        self.assertEqual(left, [2])
        for value in ("soon", "", "-1", "3y"):
            run = self.run_ctl(f"--older-than={value}")
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), value)

    def test_a_daemon_without_compiler_says_nothing_of_builds(self):
        same = self.file("same")
        _, left, _ = self.maintain([self.image(1, same, build="c" * 64)], build=None)
        self.assertEqual(left, [1])

    def test_dry_run_changes_nothing(self):
        images = [self.image(1, self.folder / "gone"), self.image(2, self.file("same"))]
        answer, left, daemon = self.maintain(images, "--dry-run")
        self.assertEqual((answer["removed"], left, daemon.names()), (1, [1, 2], ["status", "cache-list"]))

    def test_many(self):
        images = [self.image(number, self.folder / "gone") for number in range(150)]
        self.file("same")
        with FakeDaemon(images) as daemon:
            run = self.run_ctl(f"--socket={daemon.socket}")
        self.assertEqual(run.returncode, 0)
        self.assertIn("150 images removed, 146.5 KiB (module_gone 150)\n", run.stdout)

    def test_exit_status(self):
        damaged = [{"id": 3, "problem": "its digest is wrong"}]
        answer, _, _ = self.maintain([], problems=damaged)  # repaired: the damaged one was removed
        self.assertEqual(answer["damaged"], damaged)
        old = self.image(1, self.file("same"), age=100 * DAY)
        answer, _, _ = self.maintain([old], purge_error="this needs root or the group phybin", status=1)
        self.assertIn("group phybin", answer["error"])
        (self.tmp / "phybin-jit-1").mkdir()
        run = self.run_ctl("--socket=/nonexistent", "--tmp-older-than=0s")
        self.assertEqual((run.returncode, run.stderr.count("\n")), (3, 1))
        self.assertEqual(os.listdir(self.tmp), [])  # cleaned up all the same
        self.tmp = self.folder / "missing"
        self.assertEqual(self.run_ctl("--tmp-only").returncode, 1)


class Leftovers(Maintenance):
    def clean(self, *arguments, uid=None, age="0s", status=0):
        """Reason by name for what stays."""
        run = self.run_ctl("--tmp-only", "--json", f"--tmp-older-than={age}", *arguments, uid=uid)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        answer = json.loads(run.stdout)
        self.assertIsNone(answer["images"])
        for leftover in answer["leftovers"]:
            self.assertEqual(leftover["removed"], leftover["reason"] is None)
            if not arguments:
                self.assertEqual(leftover["removed"], not os.path.lexists(self.tmp / leftover["name"]))
        return {leftover["name"]: leftover["reason"] for leftover in answer["leftovers"]}

    def folder_of(self, name, uid=None):
        """A folder with files, folders, links and a pipe in it."""
        folder = self.tmp / name
        (folder / "deep/er").mkdir(parents=True)
        (folder / "code").write_bytes(b"x" * 10000)
        (folder / "deep/er/file").write_text("text")
        (folder / "deep/link").symlink_to("/etc")
        os.mkfifo(folder / "pipe")
        if uid is not None:
            for path in [folder, *folder.rglob("*")]:
                os.lchown(path, uid, uid)
        return folder

    def test_removed_and_reported(self):
        self.folder_of("phybin-jit-1")
        self.folder_of("phybin-jit-2")
        other = self.folder_of("another")
        self.assertEqual(self.clean("--dry-run"), {"phybin-jit-1": None, "phybin-jit-2": None})
        self.assertEqual(len(os.listdir(self.tmp)), 3)
        self.assertEqual(self.clean(), {"phybin-jit-1": None, "phybin-jit-2": None})
        self.assertEqual(os.listdir(self.tmp), ["another"])
        self.assertEqual((other / "deep/er/file").read_text(), "text")
        self.assertEqual(self.clean(), {})
        self.folder_of("phybin-jit-3")
        run = self.run_ctl("--tmp-only", "--tmp-older-than=0s")
        self.assertRegex(run.stdout, r"^1 left-over folders removed, \d+\.\d KiB\n$")

    def test_young_ones_stay(self):
        folder = self.folder_of("phybin-jit-1")
        for path in [folder, *folder.rglob("*")]:
            os.utime(path, (1, 1), follow_symlinks=False)  # ctime is not fooled
        self.assertEqual(self.clean(age="1h"), {"phybin-jit-1": "something in it changed lately"})
        run = self.run_ctl("--tmp-only")
        self.assertIn("changed lately", run.stdout)

    def test_links_in_place_of_folders(self):
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "file").write_text("precious")
        (self.tmp / "phybin-jit-link").symlink_to(victim)
        (self.tmp / "phybin-jit-file").write_text("")
        (self.tmp / "phybin-jit-hard").hardlink_to(victim / "file")
        os.mkfifo(self.tmp / "phybin-jit-pipe")
        self.assertEqual(set(self.clean().values()), {"not a folder"})
        self.assertEqual((victim / "file").read_text(), "precious")

    def test_links_inside(self):
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "file").write_text("precious")
        folder = self.folder_of("phybin-jit-1")
        (folder / "to-folder").symlink_to(victim)
        (folder / "deep/to-parent").symlink_to("../../..")
        (folder / "loop").symlink_to("loop")
        (folder / "hard").hardlink_to(victim / "file")
        self.assertEqual(self.clean(), {"phybin-jit-1": None})
        self.assertEqual((victim / "file").read_text(), "precious")
        self.assertEqual(os.stat(victim / "file").st_nlink, 1)

    def test_a_folder_that_changes_into_a_link_all_the_time(self):
        """Somebody exchanges a folder in it with a link to a victim's, as fast as he can, while it is cleaned up."""
        victim = self.folder / "victim"
        victim.mkdir()
        for number in range(20):
            (victim / f"file{number}").write_text("precious")
        libc = ctypes.CDLL(None, use_errno=True)
        stop = threading.Event()

        def exchange(first, second):
            while not stop.is_set():
                libc.renameat2(-100, first, -100, second, 2)  # RENAME_EXCHANGE

        for attempt in range(10):
            folder = self.tmp / "phybin-jit-race"
            (folder / "a").mkdir(parents=True)
            for number in range(50):
                (folder / "a" / f"file{number}").write_text("")
            (folder / "b").symlink_to(victim)
            outer = self.tmp / "phybin-jit-outer"
            outer.mkdir()
            (outer / "file").write_text("")
            (self.tmp / "link").symlink_to(victim)
            stop.clear()
            threads = [threading.Thread(target=exchange, args=pair) for pair in (
                (bytes(folder / "a"), bytes(folder / "b")), (bytes(outer), bytes(self.tmp / "link")))]
            for thread in threads:
                thread.start()
            run = self.run_ctl("--tmp-only", "--tmp-older-than=0s")
            stop.set()
            for thread in threads:
                thread.join()
            self.assertIn(run.returncode, (0, 1), run.stderr)
            self.assertEqual(len(os.listdir(victim)), 20)
            for name in os.listdir(self.tmp):
                path = self.tmp / name
                path.unlink() if path.is_symlink() else shutil.rmtree(path)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "needs root and FUSE")
    def test_file_system_that_does_not_answer(self):
        folder = self.folder_of("phybin-jit-1")
        with HangingFiles(folder / "mount") as hanging:
            reader = subprocess.Popen(["cat", hanging.file], stderr=subprocess.DEVNULL)
            time.sleep(1)  # once it is open, nothing is answered
            began = time.monotonic()
            run = self.run_ctl("--tmp-only", "--tmp-older-than=0s")
            self.assertLess(time.monotonic() - began, 100)
            self.assertEqual(run.returncode, 1)
            self.assertIn("takes too long", run.stderr)
        reader.wait()
        self.assertTrue((folder / "code").exists())
        self.assertEqual(self.clean(), {"phybin-jit-1": None})

    def test_nested_too_deeply(self):
        path = self.tmp / "phybin-jit-1"
        for _ in range(60):
            path = path / "d"
        path.mkdir(parents=True)
        self.assertIn("nested deeper", self.clean()["phybin-jit-1"])

    def test_live_ones_stay(self):
        uses = {
            "descriptor": "import os, sys; f = os.open(sys.argv[1] + '/deep/er/file', os.O_RDONLY)",
            "folder": "import os, sys; f = os.open(sys.argv[1] + '/deep', os.O_RDONLY)",
            "working": "import os, sys; os.chdir(sys.argv[1] + '/deep/er')",
            "mapping": "import mmap, os, sys; f = os.open(sys.argv[1] + '/code', os.O_RDONLY); "
                       "m = mmap.mmap(f, 4096, prot=mmap.PROT_READ); os.close(f)",
            "deleted": "import os, sys; f = open(sys.argv[1] + '/gone', 'w'); os.unlink(sys.argv[1] + '/gone')",
            "flock": "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX)",
        }
        processes = []
        try:
            for name, code in uses.items():
                folder = self.folder_of(f"phybin-jit-{name}")
                process = subprocess.Popen(["python3", "-c", code + "; print('ready', flush=True); sys.stdin.read()",
                                            folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                processes.append(process)
                self.assertEqual(process.stdout.readline(), b"ready\n", name)
            reasons = self.clean()
            for (name, _), process in zip(uses.items(), processes):
                self.assertEqual(reasons[f"phybin-jit-{name}"], f"process {process.pid} uses it", name)
                self.assertTrue((self.tmp / f"phybin-jit-{name}/deep/er/file").exists())
        finally:
            for process in processes:
                process.communicate()
        self.assertEqual(set(self.clean().values()), {None})

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_another_users_file_inside(self):
        folder = self.folder_of("phybin-jit-1", ALICE)
        os.chown(folder / "deep/er/file", BOB, BOB)
        self.assertEqual(self.clean(), {"phybin-jit-1": "file in it belongs to another user"})
        self.assertTrue((folder / "code").exists())
        os.chown(folder / "deep/er/file", ALICE, ALICE)
        os.chown(folder / "deep/er", 0, 0)
        self.assertEqual(self.clean(), {"phybin-jit-1": "er in it belongs to another user"})

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_users_clean_up_after_themselves_only(self):
        self.folder_of("phybin-jit-alice", ALICE)
        self.folder_of("phybin-jit-bob", BOB)
        self.folder_of("phybin-jit-root")
        foreign = "belongs to another user"
        self.assertEqual(self.clean(uid=ALICE),
                         {"phybin-jit-alice": None, "phybin-jit-bob": foreign, "phybin-jit-root": foreign})
        self.assertEqual(self.clean(), {"phybin-jit-bob": None, "phybin-jit-root": None})

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_other_file_systems_stay(self):
        script = """set -e
mount --make-rprivate /
mount --bind "$2" "$1/phybin-jit-bind/deep/er"
mount -t tmpfs none "$1/phybin-jit-tmpfs"
exec "$3" maintenance --tmp="$1" --tmp-only --tmp-older-than=0s --json"""
        victim = self.folder / "victim"
        victim.mkdir()
        (victim / "file").write_text("precious")
        for name in ("bind", "tmpfs"):
            self.folder_of(f"phybin-jit-{name}")
        run = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", self.tmp, victim, PHYBINCTL],
                             capture_output=True, text=True, timeout=120)
        if run.returncode != 0 and "mount" in run.stderr:
            self.skipTest("mounting is not allowed here")
        reasons = {leftover["name"]: leftover["reason"] for leftover in json.loads(run.stdout)["leftovers"]}
        self.assertIn("another file system", reasons["phybin-jit-bind"])
        self.assertEqual(reasons["phybin-jit-tmpfs"], "another file system")
        self.assertEqual((victim / "file").read_text(), "precious")

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_what_cannot_be_removed_is_a_failure(self):
        folder = self.folder_of("phybin-jit-1")
        if subprocess.run(["chattr", "+i", folder / "code"], capture_output=True).returncode != 0:
            self.skipTest("the file system has no immutable files")
        try:
            reasons = self.clean(status=1)
            self.assertIn("code: Operation not permitted", reasons["phybin-jit-1"])
        finally:
            subprocess.run(["chattr", "-i", folder / "code"])


class RealImages(Cache):
    def test_verified_and_removed_by_age(self):
        daemon = self.daemon()
        self.with_image(daemon)
        tmp = daemon.folder / "tmp"
        tmp.mkdir()
        answer = daemon.json("maintenance", f"--tmp={tmp}")["images"]
        self.assertEqual((answer["verified"], answer["removed"]), (1, 0), daemon.log.read_text())
        time.sleep(1.1)
        answer = daemon.json("maintenance", f"--tmp={tmp}", "--older-than=0s")["images"]
        self.assertEqual((answer["removed"], answer["causes"]), (1, {"unused": 1}))
        self.assertEqual(daemon.json("cache", "list")["images"], [])

    def test_purge_by_id(self):
        daemon = self.daemon()
        self.with_image(daemon)
        (image,) = daemon.json("cache", "list")["images"]
        for ids, removed in (([], 0), ([image["id"] + 1], 0), ([image["id"]], 1)):
            self.assertEqual(daemon.ask({"request": "cache-purge", "ids": ids})[-1]["removed"], removed)
        for ids in ("1", ["1"], [1.5], None):
            self.assertFalse(daemon.ask({"request": "cache-purge", "ids": ids})[-1]["ok"])


if __name__ == "__main__":
    unittest.main()
