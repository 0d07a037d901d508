"""phybinctl policy and top against a phybind: what is printed, who may do what, what running workers are told."""

import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from phybind import AUTO, OFF, ON, PHYBINCTL, READ, Daemon, Worker

ALICE, BOB = 12345, 12346
AS_OTHERS = os.geteuid() == 0
CACHE = "--shared-translation-cache"


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class CommandLine(unittest.TestCase):
    def run_ctl(self, *arguments):
        return subprocess.run([PHYBINCTL, *arguments], capture_output=True, text=True, timeout=60)

    def test_usage_errors_are_one_line_and_status_2(self):
        for arguments in (
            [],
            ["fly"],
            ["policy"],
            ["policy", "fly"],
            ["cache", "show"],
            ["cache", "show", "seven"],
            ["cache", "show", "1", "2"],
            ["cache", "purge"],
            ["cache", "purge", "--all", "--module=/bin/ls"],
            ["cache", "purge", "--older-than=soon"],
            ["cache", "purge", "--older-than=3y"],
            ["status", "--fast"],
            ["status", "--json=yes"],
            ["status", "--socket"],
            ["status", "--timeout=3"],
            ["settle", "--timeout=-1"],
            ["settle", "--timeout=0"],
            ["top", "--interval=0"],
            ["top", "--interval=x"],
            ["policy", "set"],
            ["policy", "set", CACHE],
            ["policy", "set", f"{CACHE}=maybe"],
            ["policy", "set", f"{CACHE}=on", f"{CACHE}=off"],
            ["policy", "set", f"{CACHE}=on", "--program=a/b"],
            ["policy", "set", f"{CACHE}=on", "--program=" + "x" * 64],
            ["policy", "set", f"{CACHE}=on", "--uid=nobody-has-this-name"],
            ["policy", "set", f"{CACHE}=on", "--uid=-1"],
            ["policy", "get", f"{CACHE}=on"],
        ):
            with self.subTest(arguments):
                result = self.run_ctl(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertTrue(result.stderr.startswith("phybinctl: "), result.stderr)

    def test_help_and_version(self):
        text = self.run_ctl("--help").stdout
        commands = [line.split("  ")[1] for line in text.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertGreater(len(commands), 8)
        self.assertIn("3 no daemon answers", text)
        for command in commands:
            words = [word for word in command.split() if word.islower()]
            result = self.run_ctl(*words, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
            self.assertTrue(result.stdout.startswith("Usage: phybinctl " + " ".join(words)), result.stdout)
            self.assertIn("--socket", result.stdout)
        self.assertRegex(self.run_ctl("--version").stdout, r"^phybinctl \d+\.\d+\.\d+\n$")

    def test_no_daemon_is_status_3(self):
        for arguments in (["status"], ["status", "--json"], ["top", "--once"], ["settle"], ["policy", "get"],
                          ["cache", "list"], ["cache", "verify"]):
            result = self.run_ctl(*arguments, "--socket=/nonexistent/socket")
            self.assertEqual(result.returncode, 3, arguments)
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_config_check(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "phybin.conf"
            file.write_text("fast_math = on\ncache_size = 1G\n[program:x]\nmemory_model = tso\n")
            self.assertEqual(self.run_ctl("config", "check", str(file)).returncode, 0)
            self.assertEqual(json.loads(self.run_ctl("config", "check", str(file), "--json").stdout)["problems"], [])
            file.write_text("cache_size = lots\nfast_math = on\n[program:x]\nmemory_model = strong\nnonsense\n"
                            "[program:y]\ncolour = red\n")
            result = self.run_ctl("config", "check", str(file))
            self.assertEqual(result.returncode, 1)
            lines = result.stdout.splitlines()
            self.assertEqual([line.split(":")[1] for line in lines], ["1", "4", "5", "7"])
            self.assertIn("cache_size: 'lots' is not allowed", lines[0])
            self.assertIn("memory_model: 'strong' is not allowed", lines[1])
            result = self.run_ctl("config", "check", str(file), "--json")
            self.assertEqual(result.returncode, 1)
            self.assertEqual([problem["line"] for problem in json.loads(result.stdout)["problems"]], [1, 4, 5, 7])
            result = self.run_ctl("config", "check", folder + "/missing")
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PHYBINCTL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)


class Status(unittest.TestCase):
    def test_status_and_settle(self):
        with Daemon() as daemon:
            status = daemon.json("status")
            self.assertEqual(status["pid"], daemon.process.pid)
            self.assertEqual(status["workers"], {"connected": 0, "total": 0})
            self.assertEqual(status["policy"], "auto")
            self.assertEqual(status["cache"]["directory"], str(daemon.cache))
            text = daemon.ctl("status", check=0).stdout
            self.assertIn(f"process {daemon.process.pid},", text)
            self.assertEqual(len({line.index(":") < 40 for line in text.splitlines()}), 1)
            self.assertEqual(daemon.json("settle", "--timeout=60"), {"idle": True})
            self.assertTrue(daemon.json("status", "--wait", "--timeout=60")["idle"])
            self.assertEqual(daemon.ctl("settle", check=0).stdout, "")
            with Worker(daemon):
                self.assertEqual(daemon.json("status")["workers"], {"connected": 1, "total": 1})

    def test_a_daemon_that_does_not_answer(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(folder + "/socket")
            listener.listen(1)
            result = subprocess.run([PHYBINCTL, "settle", "--timeout=0.2", f"--socket={folder}/socket"],
                                    capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 1)
            self.assertIn("still working after 0.2 s", result.stderr)


class Top(unittest.TestCase):
    def test_counters(self):
        with Daemon() as daemon:
            self.assertIn("no translated program", daemon.ctl("top", "--once", check=0).stdout)
            with Worker(daemon, "first") as first, Worker(daemon, "second", wanted=READ) as second:
                first.counters(guest_instructions=1000, code_bytes=5 << 20, threads=3)
                second.counters(guest_instructions=7, images=2, image_bytes=3 << 20, threads=1)
                top = daemon.json("top", "--once")
                workers = {worker["program"]: worker for worker in top["workers"]}
                self.assertEqual(workers["first"]["guest_instructions"], 1000)
                self.assertEqual(workers["first"]["pid"], os.getpid())
                self.assertEqual(workers["first"]["policy"], "on")
                self.assertEqual(workers["second"]["policy"], "read")
                self.assertEqual(workers["second"]["images"], 2)
                self.assertIsNone(workers["first"]["hit_rate"])
                self.assertEqual(top["totals"],
                                 {"workers": 2, "threads": 4, "code_bytes": 5 << 20, "image_bytes": 3 << 20})
                text = daemon.ctl("top", "--once", check=0).stdout
                self.assertIn("5.0 MiB", text)
                self.assertNotIn("\033", text)
            # The run that has ended is known: what the next one spares can be told.
            with Worker(daemon, "first") as again:
                again.counters(guest_instructions=100)
                self.assertTrue(wait_for(lambda: len(daemon.json("top", "--once")["workers"]) == 1))
                self.assertAlmostEqual(daemon.json("top", "--once")["workers"][0]["hit_rate"], 0.9)
                self.assertIn("90 %", daemon.ctl("top", "--once").stdout)

    def test_in_a_pipe_rounds_follow_each_other(self):
        with Daemon() as daemon:
            process = subprocess.Popen([PHYBINCTL, f"--socket={daemon.socket}", "top", "--json", "--interval=0.1"],
                                       stdout=subprocess.PIPE, text=True)
            try:
                for _ in range(3):
                    self.assertEqual(json.loads(process.stdout.readline())["workers"], [])
                process.stdout.close()
                self.assertNotEqual(process.wait(20), 0)
            finally:
                process.kill()
                process.wait()

    def test_a_name_cannot_steer_the_terminal(self):
        with Daemon() as daemon, Worker(daemon, "ev\x1b[2Jil\n"):
            text = daemon.ctl("top", "--once", check=0).stdout
            self.assertNotIn("\x1b", text)
            self.assertIn("ev?[2Jil?", text)

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_users_see_their_own(self):
        with Daemon() as daemon, Worker(daemon, "alices", uid=ALICE), Worker(daemon, "bobs", uid=BOB):
            daemon.socket.chmod(0o666)
            names = lambda uid: [worker["program"] for worker in daemon.json("top", "--once", uid=uid)["workers"]]
            self.assertEqual(names(ALICE), ["alices"])
            self.assertEqual(names(BOB), ["bobs"])
            self.assertCountEqual(names(None), ["alices", "bobs"])
            self.assertEqual([decision["program"] for decision in daemon.json("policy", "get", uid=ALICE)["decisions"]],
                             ["alices"])


class Policy(unittest.TestCase):
    def test_precedence_and_running_workers(self):
        with Daemon() as daemon, Worker(daemon, "prog") as worker, Worker(daemon, "other") as other:
            uid = os.geteuid()
            steps = [  # command, what prog and other are told afterwards
                (["set", f"{CACHE}=read"], READ, READ),
                (["set", f"{CACHE}=off", f"--uid={uid}"], OFF, OFF),
                (["set", f"{CACHE}=on", "--program=prog"], ON, OFF),
                (["set", f"{CACHE}=read", "--program=prog", f"--uid={uid}"], READ, OFF),
                (["set", f"{CACHE}=off", "--program=prog", "--uid=77"], READ, OFF),
                (["set", f"{CACHE}=auto", "--program=prog", f"--uid={uid}"], ON, OFF),
                (["unset", "--program=prog", f"--uid={uid}"], ON, OFF),
                (["unset", "--program=prog"], OFF, OFF),
                (["unset", f"--uid={uid}"], READ, READ),
                (["unset"], ON, ON),
            ]
            for command, first, second in steps:
                daemon.ctl("policy", *command, check=0)
                self.assertEqual((worker.told(), other.told()), (first, second), command)
            self.assertEqual(daemon.ctl("policy", "unset").returncode, 1)
            self.assertEqual(daemon.json("policy", "get")["settings"], [{"program": "prog", "uid": 77, "value": "off"}])

    def test_a_workers_own_wish_is_a_limit(self):
        with Daemon() as daemon, Worker(daemon, wanted=READ) as reads, Worker(daemon, wanted=ON) as contributes:
            self.assertEqual((reads.told(), contributes.told()), (READ, ON))
            daemon.ctl("policy", "set", f"{CACHE}=on", check=0)
            self.assertEqual((reads.told(), contributes.told()), (READ, ON))
            daemon.ctl("policy", "set", f"{CACHE}=off", check=0)
            self.assertEqual((reads.told(), contributes.told()), (OFF, OFF))

    def test_what_get_prints(self):
        with Daemon() as daemon:
            daemon.ctl("policy", "set", f"{CACHE}=off", "--program=prog", check=0)
            self.assertEqual(daemon.ctl("policy", "get", "--program=prog", check=0).stdout, "off\n")
            self.assertEqual(daemon.ctl("policy", "get", "--program=other", check=0).stdout, "auto\n")
            self.assertEqual(daemon.json("policy", "get", "--program=prog", "--uid=5")["effective"], "off")
            with Worker(daemon, "prog"):
                text = daemon.ctl("policy", "get", check=0).stdout
                self.assertRegex(text, r"prog +\(every\) +off")
                self.assertRegex(text, r"prog +\S+ +1 +1 +off +set")
                decision = daemon.json("policy", "get")["decisions"][0]
                self.assertEqual((decision["value"], decision["automatic"]), ("off", False))

    def test_settings_outlive_the_daemon_even_when_it_is_killed(self):
        with Daemon() as daemon:
            daemon.ctl("policy", "set", f"{CACHE}=read", "--program=prog", check=0)
            daemon.stop(9)
            daemon.start()
            with Worker(daemon, "prog") as worker:
                self.assertEqual(worker.told(), READ)

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_users_steer_their_own(self):
        with Daemon() as daemon, Worker(daemon, "prog", uid=ALICE) as alices, Worker(daemon, "prog", uid=BOB) as bobs:
            daemon.socket.chmod(0o666)
            # Without --uid a user means himself.
            daemon.ctl("policy", "set", f"{CACHE}=off", uid=ALICE, check=0)
            self.assertEqual((alices.told(), bobs.told()), (OFF, ON))
            daemon.ctl("policy", "set", f"{CACHE}=read", "--program=prog", f"--uid={ALICE}", uid=ALICE, check=0)
            self.assertEqual((alices.told(), bobs.told()), (READ, ON))
            for refused in (["set", f"{CACHE}=off", f"--uid={BOB}"], ["unset", f"--uid={BOB}"],
                            ["get", f"--uid={BOB}"]):
                result = daemon.ctl("policy", *refused, uid=ALICE)
                self.assertEqual(result.returncode, 1, refused)
                self.assertIn("needs root", result.stderr)
            daemon.ctl("policy", "set", f"{CACHE}=off", f"--uid={BOB}", check=0)
            self.assertEqual(bobs.told(), OFF)
            users = lambda uid: {setting["uid"] for setting in daemon.json("policy", "get", uid=uid)["settings"]}
            self.assertEqual(users(ALICE), {ALICE})
            self.assertEqual(users(None), {ALICE, BOB})
            self.assertEqual(daemon.ctl("policy", "get", "--program=prog", uid=ALICE).stdout, "read\n")

    @unittest.skipUnless(AS_OTHERS, "needs root")
    def test_a_user_cannot_fill_the_daemon(self):
        with Daemon() as daemon:
            daemon.socket.chmod(0o666)
            for number in range(256):
                answer = daemon.ask({"request": "policy-set", "value": "on", "program": f"p{number}", "uid": ALICE})
                self.assertTrue(answer[0]["ok"])
            refused = daemon.ctl("policy", "set", f"{CACHE}=on", "--program=one-more", uid=ALICE)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("at most 256", refused.stderr)
            daemon.ctl("policy", "set", f"{CACHE}=off", "--program=p7", uid=ALICE, check=0)
            self.assertEqual(len(daemon.json("policy", "get")["settings"]), 256)

    def test_bad_requests_are_refused(self):
        with Daemon() as daemon:
            for request in (
                b"{",
                b"{}",
                {"request": 5},
                {"request": "policy-set"},
                {"request": "policy-set", "value": "maybe"},
                {"request": "policy-set", "value": 1},
                {"request": "policy-set", "value": "on", "uid": "root"},
                {"request": "policy-set", "value": "on", "uid": -2},
                {"request": "policy-set", "value": "on", "uid": 1 << 32},
                {"request": "policy-set", "value": "on", "program": ""},
                {"request": "policy-set", "value": "on", "program": "a/b"},
                {"request": "policy-set", "value": "on", "program": "x" * 64},
                {"request": "policy-set", "value": "on", "program": "a\nb"},
                {"request": "policy-get", "program": []},
            ):
                answers = daemon.ask(request)
                self.assertEqual(len(answers), 1, request)
                self.assertFalse(answers[0]["ok"], request)
                self.assertNotIn("\n", answers[0]["error"])
            self.assertEqual(daemon.json("policy", "get")["settings"], [])


class AutoPolicy(unittest.TestCase):
    def test_simulated_topology(self):
        with Daemon() as probe:
            nodes = probe.folder / "nodes"
            for node in range(4):
                (nodes / f"node{node}").mkdir(parents=True)
                (nodes / f"node{node}/cpulist").write_text(f"{node * 1000}-{node * 1000 + 7}\n")
            with Daemon(f"--topology={nodes}") as daemon:
                with Worker(daemon, "first", cpu=3001), Worker(daemon, "second", cpu=7):
                    top = {worker["program"]: worker["node"] for worker in daemon.json("top", "--once")["workers"]}
                    self.assertEqual(top, {"first": 3, "second": 0})


if __name__ == "__main__":
    unittest.main()
