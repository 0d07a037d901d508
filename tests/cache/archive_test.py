"""phybinctl cache export and import: what goes over, who may bring it, and that nothing damaged or forged comes in."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import unittest

from cache_test import Cache
from cache_daemon import entry_points
from phybind import PHYBINCTL
from policy_test import ALICE, AS_OTHERS, wait_for

HEAD, FRONT = 24, 120


class Archives(Cache):
    """Two machines: one that exports, one that imports."""

    def key(self, daemon, name):
        path = daemon.folder / name
        if not path.exists():
            subprocess.run([PHYBINCTL, "key", "generate", path], check=True, capture_output=True)
        return path

    def machines(self):
        first = self.daemon()
        program = self.with_image(first)
        second_keys = first.folder / "installed"
        second_keys.mkdir()
        second = self.daemon(f"--keys={second_keys}")
        shutil.copy(str(self.key(first, "key")) + ".pub", second_keys)
        return first, second, program

    def export(self, daemon, *arguments, name="archive"):
        path = daemon.folder / name
        path.unlink(missing_ok=True)
        daemon.ctl("cache", "export", path, "--key", self.key(daemon, "key"), *arguments, check=0)
        return path

    def images(self, daemon):
        return daemon.json("cache", "list")["images"]

    def assert_empty(self, daemon):
        self.assertEqual(self.images(daemon), [])
        self.assertEqual(os.listdir(daemon.cache / "new"), [])
        self.assertEqual(daemon.json("status")["profile"]["entry_points"], 0)

    def sign(self, daemon, data):
        """Signs with openssl, so that the signature is checked by other code than made it."""
        secret = self.key(daemon, "key").read_text().split()[1]
        der = bytes.fromhex("302e020100300506032b657004220420") + bytes.fromhex(secret)
        folder = daemon.folder
        (folder / "der").write_bytes(der)
        length = struct.unpack_from("<Q", data, 16)[0]
        (folder / "text").write_bytes(data[:HEAD] + data[FRONT:FRONT + length])
        subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", folder / "der", "-keyform", "DER", "-rawin", "-in",
                        folder / "text", "-out", folder / "signature"], check=True, capture_output=True)
        return data[:HEAD + 32] + (folder / "signature").read_bytes() + data[FRONT:]


def manifest_of(data):
    length = struct.unpack_from("<Q", data, 16)[0]
    return json.loads(data[FRONT:FRONT + length]), data[FRONT + length:]


def with_manifest(data, manifest, parts=None):
    """The archive with another manifest; its signature does not fit any more."""
    _, old = manifest_of(data)
    text = json.dumps(manifest).encode()
    return data[:16] + struct.pack("<Q", len(text)) + data[24:FRONT] + text + (old if parts is None else parts)


class RoundTrip(Archives):
    def test_images_and_profiles_go_over(self):
        first, second, program = self.machines()
        path = self.export(first)
        manifest, parts = manifest_of(path.read_bytes())
        self.assertEqual((len(manifest["images"]), len(manifest["profiles"])), (1, 1))
        self.assertEqual(manifest["images"][0]["module"], "program")
        self.assertEqual(manifest["images"][0]["module_sha256"], hashlib.sha256(program.read_bytes()).hexdigest())
        self.assertEqual(manifest["images"][0]["profile"], 0)
        self.assertEqual(sorted(entry_points(program)), list(struct.unpack_from("<40I", parts)))

        answer = second.json("cache", "import", path)
        self.assertEqual((answer["images"], answer["profiles"], answer["new_entry_points"]), (1, 1, 40))
        image, original = self.images(second)[0], self.images(first)[0]
        self.assertEqual(image["origin"], "imported")
        shown = [daemon.json("cache", "show", row["id"])["image"] for daemon, row in ((first, original), (second, image))]
        self.assertEqual(shown[0]["content_sha256"], shown[1]["content_sha256"])
        # A program that has never run there gets it.
        worker = self.worker(second, program)
        self.assertTrue(wait_for(lambda: second.json("cache", "show", image["id"])["image"]["workers"] == 1))
        worker.close()
        again = second.json("cache", "import", path)
        self.assertEqual((again["images"], again["present"], again["new_entry_points"]), (0, 1, 0))

    def test_images_stay_those_of_their_machines(self):
        """Those for another counter go over too, and stay what they are."""
        first, second, program = self.machines()
        features = 31 << 27 | 1
        self.make_image(first, program, features=features)
        self.assertEqual(second.json("cache", "import", self.export(first))["images"], 2)
        self.assertCountEqual([image["host_features"] for image in self.images(second)], [0, features])
        for wanted, count in ((features, 1), (0, 1), (1, 0), (30 << 27 | 1, 0)):
            self.worker(second, program).close()  # shows the program
            self.assertEqual(len(self.offered(second, program, features=wanted)), count, wanted)

    def test_a_module_that_is_at_hand_is_translated_again(self):
        first, second, program = self.machines()
        path = self.export(first)
        with self.worker(second, program):  # shows the module; no entry point was met
            self.settle(second)
        self.assertEqual(second.json("cache", "import", path)["spot_checks"], 1)
        self.settle(second)
        self.assertEqual([image["origin"] for image in self.images(second)], ["imported and checked"],
                         second.log.read_text())

    def test_an_image_that_the_translator_does_not_make_is_found_out(self):
        first, second, program = self.machines()
        path = self.export(first)
        with self.worker(second, program):
            self.settle(second)
        # Signed by a key that is trusted, whole, and yet not what this profile makes.
        manifest, parts = manifest_of(path.read_bytes())
        profile = parts[:4]
        parts = profile + parts[manifest["profiles"][0]["bytes"]:]
        manifest["profiles"][0].update(bytes=len(profile), sha256=hashlib.sha256(profile).hexdigest())
        forged = self.sign(first, with_manifest(path.read_bytes(), manifest, parts))
        path.write_bytes(forged)
        self.assertEqual(second.json("cache", "import", path)["images"], 1)
        self.settle(second)
        self.assertIn("is not what the translator makes", second.log.read_text())
        self.assertNotIn("imported", [image["origin"] for image in self.images(second)])

    def test_profiles_alone(self):
        first, second, program = self.machines()
        path = first.folder / "profiles"
        answer = first.json("cache", "export", path, "--profiles-only")
        self.assertEqual((answer["images"], answer["profiles"], answer["signed"]), (0, 1, False))
        self.assertEqual(second.json("cache", "import", path)["new_entry_points"], 40)
        # The image is made when the module is first seen, without any entry point being met here.
        with self.worker(second, program):
            self.settle(second)
        self.assertEqual([(image["profile"], image["origin"]) for image in self.images(second)], [(40, "made here")],
                         second.log.read_text())

    def test_module_filter_and_nothing_to_export(self):
        first, _, program = self.machines()
        self.with_image(first, "other", source="/bin/false")
        manifest, _ = manifest_of(self.export(first, "--module", program).read_bytes())
        self.assertEqual([image["module"] for image in manifest["images"]], ["program"])
        self.assertEqual([profile["module"] for profile in manifest["profiles"]], ["program"])
        result = first.ctl("cache", "export", first.folder / "none", "--module=/bin/ls")
        self.assertEqual((result.returncode, result.stderr), (1, "phybinctl: there is nothing to export\n"))
        self.assertFalse((first.folder / "none").exists())
        result = first.ctl("cache", "export", "/nonexistent/archive")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))


class Refused(Archives):
    def refuse(self, daemon, path, why, *arguments, uid=None):
        result = daemon.ctl("cache", "import", path, *arguments, uid=uid)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(why, result.stderr)
        self.assert_empty(daemon)

    def test_damaged_archives(self):
        first, second, _ = self.machines()
        path = self.export(first)
        good = path.read_bytes()
        manifest, parts = manifest_of(good)
        end = len(good) - len(parts)
        cases = {"empty": b"", "magic": b"x" + good[1:], "format": good[:8] + b"\2" + good[9:],
                 "reserved": good[:12] + b"\1" + good[13:], "more": good + b"\0", "less": good[:-1],
                 "only the front": good[:FRONT], "cut in the front": good[:FRONT - 1],
                 "cut in the manifest": good[:end - 1], "cut in the profile": good[:end + 5],
                 "huge manifest": good[:16] + struct.pack("<Q", 1 << 62) + good[24:],
                 "long manifest": good[:16] + struct.pack("<Q", len(good)) + good[24:]}
        for position in (FRONT, FRONT + 10, end, end + 3, end + 170, (end + len(good)) // 2, len(good) - 1):
            cases[f"flipped at {position}"] = good[:position] + bytes([good[position] ^ 4]) + good[position + 1:]
        for position in (24, 60, 100, FRONT - 1):
            if 24 <= position < 56:
                continue  # the key in the file is for people; the installed ones count
            cases[f"signature flipped at {position}"] = (good[:position] + bytes([good[position] ^ 1]) +
                                                         good[position + 1:])
        for name, data in cases.items():
            with self.subTest(name):
                path.write_bytes(data)
                self.refuse(second, path, "phybinctl: ")
        # And the good one still goes in, so that the refusals meant something.
        path.write_bytes(good)
        self.assertEqual(second.json("cache", "import", path)["images"], 1)

    def test_manifests_that_lie(self):
        first, second, _ = self.machines()
        path = self.export(first)
        good = path.read_bytes()
        def change(part, **values):
            manifest, _ = manifest_of(good)
            manifest[part][0].update(values)
            return manifest
        cases = {
            "path": change("images", module="../../etc/passwd"),
            "path of a profile": change("profiles", module="/etc/shadow"),
            "dots": change("images", module=".."),
            "control characters": change("images", module="a\nb"),
            "no name": change("images", module=""),
            "huge": change("images", bytes=1 << 60),
            "negative": change("images", bytes=-1),
            "other module": change("images", module_sha256="00" * 32, profile=None),
            "other features": change("images", host_features=1),
            "features too large": change("images", host_features=1 << 40),
            "profile of nobody": change("images", profile=7),
            "profile of another": change("profiles", module_sha256="00" * 32),
            "broken digest": change("images", sha256="zz"),
            "no list": {**manifest_of(good)[0], "images": 5},
            "no profiles": {key: value for key, value in manifest_of(good)[0].items() if key != "profiles"},
            "other format": {**manifest_of(good)[0], "format": 2},
        }
        for name, manifest in cases.items():
            with self.subTest(name):
                path.write_bytes(self.sign(first, with_manifest(good, manifest)))
                self.refuse(second, path, "phybinctl: ")
        unordered = struct.pack("<II", 64, 32)
        manifest, parts = manifest_of(good)
        parts = unordered + parts[manifest["profiles"][0]["bytes"]:]
        manifest["profiles"][0].update(bytes=8, sha256=hashlib.sha256(unordered).hexdigest())
        path.write_bytes(self.sign(first, with_manifest(good, manifest, parts)))
        self.refuse(second, path, "not in order")

    def test_signatures(self):
        first, second, _ = self.machines()
        path = first.folder / "archive"
        first.ctl("cache", "export", path, check=0)
        self.refuse(second, path, "it is not signed")
        first.ctl("cache", "export", path, "--key", self.key(first, "stranger"), check=0)
        self.refuse(second, path, "not signed by a key in")
        # A key that others can change counts for nothing.
        installed = first.folder / "installed"
        shutil.copy(str(self.key(first, "stranger")) + ".pub", installed)
        (installed / "stranger.pub").chmod(0o666)
        self.refuse(second, path, "not signed by a key in")
        self.assertIn("others than root can change it", second.log.read_text())
        (installed / "stranger.pub").chmod(0o644)
        self.assertEqual(second.json("cache", "import", path)["images"], 1)

    def test_secret_keys(self):
        first, _, _ = self.machines()
        key = self.key(first, "key")
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        again = subprocess.run([PHYBINCTL, "key", "generate", key], capture_output=True, text=True)
        self.assertEqual((again.returncode, again.stderr.count("\n")), (1, 1))
        key.chmod(0o644)
        for name, why in ((key, "others may read"), (str(key) + ".pub", "others may read"), ("/nonexistent", "No such")):
            result = first.ctl("cache", "export", first.folder / "archive", "--key", name)
            self.assertEqual(result.returncode, 1)
            self.assertIn(why, result.stderr)
        key.write_text("phybin-ed25519-secret 12\n")
        key.chmod(0o600)
        self.assertIn("not a secret key", first.ctl("cache", "export", first.folder / "archive", "--key", key).stderr)

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_users_bring_profiles_only(self):
        first, second, program = self.machines()
        path = self.export(first)
        second.socket.chmod(0o666)
        first.folder.chmod(0o755)
        self.refuse(second, path, "images can be imported by root only", uid=ALICE)
        answer = second.json("cache", "import", path, "--profiles-only", uid=ALICE)
        self.assertEqual((answer["images"], answer["new_entry_points"]), (0, 40))
        self.assertEqual(self.images(second), [])
        # They are that user's: nothing of them is exported to another.
        first.socket.chmod(0o666)
        result = first.ctl("cache", "export", "/tmp/nothing", uid=ALICE)
        self.assertEqual(result.returncode, 1)

    def test_requests_out_of_order(self):
        daemon = self.daemon()
        for request in ({"request": "cache-import-begin"}, {"request": "cache-import-commit", "token": "x"},
                        {"request": "cache-import-part", "token": "x", "image": 0},
                        {"request": "cache-export-image", "id": 5},
                        {"request": "cache-export-profile", "module_sha256": "12"}):
            self.assertFalse(daemon.ask(request)[0]["ok"], request)


if __name__ == "__main__":
    unittest.main()
