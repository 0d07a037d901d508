"""phybinctl cache: list, show, verify and purge of images that a real compiler made; copies on memory nodes."""

import os
import time
import unittest

from cache_daemon import BUILD_ID, DaemonTest, entry_points, meet
from phybind import AUTO, OFF, ON, Worker
from policy_test import ALICE, AS_OTHERS, BOB, wait_for


class Cache(DaemonTest):
    def with_image(self, daemon, name="program", uid=None, source="/bin/true"):
        """A program of which there is an image. Users' programs belong to them."""
        program = self.program(daemon, name=name, source=source)
        if uid is not None:
            os.chown(program, uid, uid)
        with self.worker(daemon, program, uid=uid) as worker:
            meet(worker, 0, entry_points(program))
        self.settle(daemon)
        return program

    def image_file(self, daemon, number):
        return daemon.json("cache", "show", number)["image"]["file"]


class ListAndShow(Cache):
    def test_json_and_text(self):
        daemon = self.daemon()
        self.assertEqual(daemon.json("cache", "list")["images"], [])
        program = self.with_image(daemon)
        images = daemon.json("cache", "list")["images"]
        self.assertEqual(len(images), 1, daemon.log.read_text())
        image = images[0]
        self.assertEqual(image["module"], str(program))
        self.assertIsNone(image["uid"])
        self.assertEqual(image["translator_build"], BUILD_ID.hex())
        self.assertEqual(image["profile"], 40)
        self.assertEqual(image["state"], "verified")
        self.assertGreater(image["entries"], 0)
        self.assertLess(abs(image["created_at"] - time.time()), 600)
        text = daemon.ctl("cache", "list", check=0).stdout.splitlines()
        self.assertEqual(len(text), 2)
        self.assertRegex(text[1], rf"^ *{image['id']}  everybody .* {program}$")

        shown = daemon.json("cache", "show", image["id"])["image"]
        self.assertEqual({name: shown[name] for name in image}, image)
        self.assertEqual(os.path.getsize(shown["file"]), image["bytes"])
        self.assertEqual(shown["module_bytes"], os.path.getsize(program))
        self.assertGreater(shown["weak_code_bytes"], 0)
        self.assertEqual(shown["workers"], 0)
        with self.worker(daemon, program):
            self.assertEqual(daemon.json("cache", "show", image["id"])["image"]["workers"], 1)
        text = daemon.ctl("cache", "show", image["id"], check=0).stdout
        self.assertIn(f"module:           {program}\n", text)
        self.assertIn("host features:    none\n", text)
        self.assertIn("TSC:              the counter shifted by 0\n", text)
        missing = daemon.ctl("cache", "show", 999)
        self.assertEqual((missing.returncode, missing.stderr), (1, "phybinctl: there is no image 999\n"))

    def test_by_module(self):
        daemon = self.daemon()
        first, second = self.with_image(daemon), self.with_image(daemon, "other", source="/bin/false")
        modules = lambda *arguments: [image["module"] for image in daemon.json("cache", "list", *arguments)["images"]]
        self.assertCountEqual(modules(), [str(first), str(second)])
        self.assertEqual(modules("--module", first), [str(first)])
        # Another name of the same content finds it, and so does the name of a file that is gone.
        link = daemon.folder / "link"
        os.link(second, link)
        self.assertEqual(modules("--module", link), [str(second)])
        os.unlink(first)
        self.assertEqual(modules("--module", first), [str(first)])
        self.assertEqual(modules("--module", "/bin/ls"), [])

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_users_see_what_serves_them(self):
        daemon = self.daemon()
        daemon.socket.chmod(0o666)
        mine = self.with_image(daemon, "alices", uid=ALICE)
        everybodys = self.with_image(daemon, "roots", source="/bin/false")
        modules = lambda uid: [image["module"] for image in daemon.json("cache", "list", uid=uid)["images"]]
        self.assertEqual(modules(ALICE), [str(mine)])
        self.assertEqual(modules(BOB), [])
        self.assertCountEqual(modules(None), [str(mine), str(everybodys)])
        with self.worker(daemon, everybodys, uid=BOB):
            self.assertTrue(wait_for(lambda: modules(BOB) == [str(everybodys)]))
        numbers = {image["module"]: image["id"] for image in daemon.json("cache", "list")["images"]}
        self.assertEqual(daemon.ctl("cache", "show", numbers[str(mine)], uid=BOB).returncode, 1)
        self.assertEqual(daemon.ctl("cache", "show", numbers[str(mine)], uid=ALICE).returncode, 0)


class Verify(Cache):
    def test_damage_is_found_and_removed(self):
        daemon = self.daemon()
        first, second = self.with_image(daemon), self.with_image(daemon, "other", source="/bin/false")
        self.assertEqual(daemon.json("cache", "verify")["problems"], [])
        self.assertEqual(daemon.ctl("cache", "verify", check=0).stdout, "2 images verified, 0 damaged\n")
        number = daemon.json("cache", "list", "--module", second)["images"][0]["id"]
        path = self.image_file(daemon, number)
        os.chmod(path, 0o600)
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        result = daemon.ctl("cache", "verify", check=1)
        self.assertIn(f"image {number}: ", result.stdout)
        self.assertTrue(result.stdout.endswith("2 images verified, 1 damaged\n"), result.stdout)
        self.assertFalse(os.path.exists(path))
        self.assertEqual([image["module"] for image in daemon.json("cache", "list")["images"]], [str(first)])

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_needs_privilege(self):
        daemon = self.daemon()
        daemon.socket.chmod(0o666)
        self.with_image(daemon)
        for command in (["verify"], ["purge", "--all"], ["purge", "--module=/bin/true"]):
            result = daemon.ctl("cache", *command, uid=ALICE)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr, "phybinctl: this needs root or the group phybin\n")
        self.assertEqual(len(daemon.json("cache", "list")["images"]), 1)


class Purge(Cache):
    def test_all_age_and_module(self):
        daemon = self.daemon()
        first, second = self.with_image(daemon), self.with_image(daemon, "other", source="/bin/false")
        self.assertEqual(daemon.json("cache", "purge", "--older-than=1h")["removed"], 0)
        with self.worker(daemon, first) as runs:
            self.assertEqual(len(runs.offers), 1)
            answer = daemon.json("cache", "purge", "--module", first)
            self.assertEqual((answer["removed"], answer["removed_bytes"]), (1, runs.offers[0]["bytes"]))
            # A program that has it mapped keeps it.
            self.assertEqual(len(os.pread(runs.offers[0]["file"], 4096, 0)), 4096)
        self.assertEqual([image["module"] for image in daemon.json("cache", "list")["images"]], [str(second)])
        time.sleep(1.1)
        self.assertEqual(daemon.ctl("cache", "purge", "--older-than=0s", check=0).stdout.split(" ")[0], "1")
        self.assertEqual(daemon.json("cache", "list")["images"], [])
        self.assertEqual(sum(len(files) for _, _, files in os.walk(daemon.cache / "images")), 0)
        self.with_image(daemon, "again")
        self.assertEqual(daemon.json("cache", "purge", "--all")["removed"], 1)

    def test_bad_requests(self):
        daemon = self.daemon()
        for request in ({"request": "cache-purge"}, {"request": "cache-purge", "module": ""},
                        {"request": "cache-purge", "older_than_seconds": "1"},
                        {"request": "cache-purge", "module_sha256": "ab"}, {"request": "cache-show", "id": "1"},
                        {"request": "cache-list", "module": 7}):
            self.assertFalse(daemon.ask(request)[0]["ok"], request)


class Copies(Cache):
    """Copies of images on memory nodes, on a machine that is told to have two."""

    def nodes(self, daemon):
        nodes = daemon.folder / "nodes"
        for node in range(2):
            (nodes / f"node{node}").mkdir(parents=True)
            (nodes / f"node{node}/cpulist").write_text(f"{node * 1000}-{node * 1000 + 3}\n")
        return nodes

    def test_programs_on_two_nodes_get_copies_of_their_own(self):
        probe = self.daemon()
        daemon = self.daemon(f"--topology={self.nodes(probe)}", config="log_level = debug\n")
        program = self.with_image(daemon)
        number = daemon.json("cache", "list")["images"][0]["id"]
        # Programs that have run for long: what is known of the past says that copies pay.
        workers = [self.worker(daemon, program, cpu=cpu) for cpu in (0, 1, 1000, 1001)]
        self.assertEqual({worker["remote"] for worker in daemon.json("top", "--once")["workers"]}, {True})
        show = lambda: daemon.json("cache", "show", number)["image"]
        original = os.stat(show()["file"])
        self.assertTrue(wait_for(lambda: show()["copies"] == 2, 60), daemon.log.read_text())
        near = [self.worker(daemon, program, cpu=cpu) for cpu in (2, 3, 1002)]
        files = [os.fstat(worker.offers[0]["file"]) for worker in near]
        self.assertEqual(files[0].st_ino, files[1].st_ino)
        self.assertNotEqual(files[0].st_ino, files[2].st_ino)
        self.assertNotIn(original.st_ino, [file.st_ino for file in files])
        with open(show()["file"], "rb") as file:
            content = file.read()
        for worker in near:
            self.assertEqual(os.pread(worker.offers[0]["file"], len(content) + 1, 0), content)
        top = daemon.json("top", "--once")["workers"]
        self.assertEqual([worker["remote"] for worker in top].count(False), 3)
        self.assertEqual({worker["node"] for worker in top}, {0, 1})
        # They go when the image goes.
        folder = daemon.cache / "copies"
        self.assertEqual(len(os.listdir(folder)), 2)
        daemon.ctl("cache", "purge", "--all", check=0)
        self.assertTrue(wait_for(lambda: not os.listdir(folder), 30))
        for worker in workers + near:
            worker.close()

    def test_one_node_has_none(self):
        daemon = self.daemon()
        program = self.with_image(daemon)
        workers = [self.worker(daemon, program) for _ in range(4)]
        self.assertEqual({worker["remote"] for worker in daemon.json("top", "--once")["workers"]}, {False})
        time.sleep(5)
        self.assertEqual(os.listdir(daemon.cache / "copies"), [])


if __name__ == "__main__":
    unittest.main()
