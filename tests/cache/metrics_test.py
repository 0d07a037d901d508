"""phybinctl metrics: the text is read as strictly as the OpenMetrics specification has it; counters never fall; the
dashboard asks for what is there. And the daemon's log in the journal."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from phybind import PHYBIND, ROOT, Daemon, Worker
from policy_test import ALICE, AS_OTHERS, wait_for

SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?\d+(?:\.\d+)?)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
SUFFIXES = {"counter": "_total", "gauge": "", "info": "_info"}


def parse(text):
    """Families by name: type, unit, help, and samples by their labels."""
    assert text.endswith("# EOF\n"), text[-40:]
    families, current, names = {}, None, set()
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("# "):
            _, what, name, value = line.split(" ", 3)
            if current is None or name != current["name"]:
                assert what == "TYPE", f"begins with {what}: {line}"
                assert name not in families, f"twice: {name}"
                current = families[name] = {"name": name, "samples": {}}
            assert not current["samples"], f"after samples: {line}"
            assert what in ("TYPE", "UNIT", "HELP") and what.lower() not in current, line
            current[what.lower()] = value
            continue
        match = SAMPLE.match(line)
        assert match, f"not a sample: {line!r}"
        name, labels, value = match.groups()
        assert current and name == current["name"] + SUFFIXES[current["type"]], f"in another family: {line}"
        pairs = LABEL.findall(labels or "")
        assert len(dict(pairs)) == len(pairs), f"a label twice: {line}"
        key = tuple(sorted(pairs))
        assert key not in current["samples"], f"a sample twice: {line}"
        names.add(name)
        current["samples"][key] = float(value)
    for name, family in families.items():
        assert name.startswith("phybin_"), name
        assert family.get("type") in SUFFIXES and family.get("help", "").endswith("."), name
        assert not name.endswith(("_total", "_info")), name
        if "unit" in family:
            assert name.endswith("_" + family["unit"]), name
        if family["type"] == "counter":
            assert all(value >= 0 and value == int(value) for value in family["samples"].values()), name
        assert family["samples"], f"no samples: {name}"
    return families


class Metrics(unittest.TestCase):
    def metrics(self, daemon, **more):
        return parse(daemon.ctl("metrics", check=0, **more).stdout)

    def value(self, families, name, **labels):
        return families[name]["samples"][tuple(sorted(labels.items()))]

    def test_the_parser_refuses(self):
        good = "# TYPE phybin_a gauge\n# HELP phybin_a A.\nphybin_a 1\n# EOF\n"
        parse(good)
        for bad in (good.replace("# EOF\n", ""), good.replace("gauge", "counter"), good.replace("phybin_a 1", "phybin_b 1"),
                    good.replace("1\n", "1\nphybin_a 2\n"), good.replace("# TYPE phybin_a gauge\n", ""),
                    good.replace("phybin_a 1", 'phybin_a{x="a"b"} 1'), good.replace(" 1\n", " one\n")):
            with self.assertRaises((AssertionError, KeyError), msg=bad):
                parse(bad)

    def test_text(self):
        with Daemon() as daemon:
            families = self.metrics(daemon)
            (labels,) = families["phybin_build"]["samples"]
            self.assertEqual(dict(labels)["version"], daemon.json("status")["version"])
            status = daemon.json("status")["cache"]
            self.assertEqual(self.value(families, "phybin_cache_limit_bytes"), status["limit_bytes"])
            self.assertTrue(status["writable"])
            self.assertGreater(status["free_bytes"], 0)
            self.assertEqual(self.value(families, "phybin_workers", policy="on"), 0)
            with Worker(daemon) as worker:
                worker.counters(guest_instructions=1000, regions=10, code_bytes=5000, images=2, image_bytes=300,
                                image_links=7, threads=3)
                families = self.metrics(daemon)
                self.assertEqual(sum(families["phybin_workers"]["samples"].values()), 1)
                for name, value in (("workers_started", 1), ("worker_threads", 3), ("images_attached", 2),
                                    ("images_attached_bytes", 300), ("private_code_bytes", 5000),
                                    ("translated_instructions", 1000), ("translated_regions", 10), ("image_links", 7)):
                    self.assertEqual(self.value(families, "phybin_" + name), value, name)
                self.assertEqual(daemon.json("metrics")["text"].count("# EOF"), 1)

    def test_counters_never_fall(self):
        with Daemon() as daemon:
            with Worker(daemon) as worker:
                worker.counters(guest_instructions=1000)
            self.assertTrue(wait_for(lambda: daemon.json("status")["workers"]["connected"] == 0))
            with Worker(daemon) as worker:
                worker.counters(guest_instructions=50)
                self.assertEqual(self.value(self.metrics(daemon), "phybin_translated_instructions"), 1050)

    def test_a_worker_that_lies(self):
        with Daemon() as daemon:
            for _ in range(2):
                with Worker(daemon) as worker:
                    worker.counters(guest_instructions=2**64 - 1, threads=2**64 - 1, code_bytes=2**64 - 1)
                    self.assertLess(self.value(self.metrics(daemon), "phybin_worker_threads"), 2**50)
            self.assertTrue(wait_for(lambda: daemon.json("status")["workers"]["connected"] == 0))
            self.assertEqual(self.value(self.metrics(daemon), "phybin_translated_instructions"), 2 * 2**44)

    def test_textfile(self):
        with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "phybin.prom"
            file.write_text("old")
            file.chmod(0o600)
            self.assertEqual(daemon.ctl("metrics", f"--textfile={file}", check=0).stdout, "")
            parse(file.read_text())
            self.assertEqual(file.stat().st_mode & 0o777, 0o644)
            self.assertEqual(os.listdir(folder), ["phybin.prom"])
            run = daemon.ctl("metrics", f"--textfile={folder}/no/such/folder.prom", check=1)
            self.assertEqual((run.stdout, run.stderr.count("\n")), ("", 1))
            (Path(folder) / "folder").mkdir()
            daemon.ctl("metrics", f"--textfile={folder}/folder", check=1)
            self.assertCountEqual(os.listdir(folder), ["folder", "phybin.prom"])
            daemon.ctl("metrics", "--textfile=", check=2)

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_everybody_may_see_them(self):
        with Daemon() as daemon:
            daemon.socket.chmod(0o666)
            self.assertIn("phybin_workers", self.metrics(daemon, uid=ALICE))

    def test_dashboard(self):
        dashboard = json.loads((ROOT / "etc/grafana-phybin.json").read_text())
        with Daemon() as daemon:
            families = self.metrics(daemon)
        known = {name + SUFFIXES[family["type"]] for name, family in families.items()}
        used = set()
        for panel in dashboard["panels"]:
            self.assertTrue(panel["title"])
            for target in panel["targets"]:
                used |= set(re.findall(r"phybin_[a-z_]+", target["expr"]))
        self.assertEqual(used - known, set())
        self.assertEqual(known - used, {"phybin_image_links_total", "phybin_translated_regions_total"})
        numbers = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(numbers), len(set(numbers)))


JOURNAL = """mount --make-rprivate / && mount -t tmpfs none /run && mkdir -p /run/systemd/journal &&
exec python3 -c '
import os, socket, subprocess, sys, time
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
journal.settimeout(30)
errors = open(sys.argv[2], "w")
if sys.argv[3] == "journal":
    status = os.fstat(errors.fileno())
    os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
else:
    os.environ["JOURNAL_STREAM"] = "1:1"
daemon = subprocess.Popen([sys.argv[1], *sys.argv[4:]], stderr=errors)
if sys.argv[3] == "journal":
    while True:
        entry = journal.recv(65536).decode()
        print(entry)
        if "ready: " in entry: break
else:
    while "ready: " not in open(sys.argv[2]).read() and daemon.poll() is None: time.sleep(0.1)
daemon.terminate()
daemon.wait(30)
' "$@"
"""


@unittest.skipUnless(AS_OTHERS, "needs root")
class Journal(unittest.TestCase):
    def run_daemon(self, mode):
        """What the journal and what stderr got."""
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["unshare", "--mount", "sh", "-c", JOURNAL, "sh", PHYBIND, f"{folder}/stderr", mode,
                                  f"--socket={folder}/socket", f"--cache={folder}/cache", "--compiler=/nonexistent",
                                  f"--config={folder}/phybin.conf"], capture_output=True, text=True, timeout=120)
            if "mount:" in run.stderr:
                self.skipTest("mounting is not allowed here")
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stdout, Path(f"{folder}/stderr").read_text()

    def test_entries_with_fields(self):
        journal, errors = self.run_daemon("journal")
        self.assertEqual(errors, "")
        self.assertRegex(journal, r"(?m)^MESSAGE=ready: .*\nPRIORITY=6\nSYSLOG_IDENTIFIER=phybind$")
        self.assertRegex(journal, r"(?m)^MESSAGE=.*phybin.conf: .*\nPRIORITY=4$")

    def test_another_stderr_is_written_to(self):
        journal, errors = self.run_daemon("stderr")
        self.assertEqual(journal, "")
        self.assertRegex(errors, r"(?m)^phybind: ready: ")


if __name__ == "__main__":
    unittest.main()
