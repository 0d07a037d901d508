"""phybinctl doctor on recorded machines, good and bad for each check, and on this one."""

import json
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from phybind import PHYBINCTL, ROOT, Daemon
from recorded_machine import FEATURES, LOG, MAGIC, MASK, PCI, GPU, Machine, binfmt_entry

WORKER = ROOT / "build/arm64/worker/phybin"


def doctor(*arguments, uid=None):
    command = [PHYBINCTL, "doctor", *map(str, arguments)]
    if uid is not None:
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class Recorded(unittest.TestCase):
    def found(self, machine, *arguments, uid=None):
        """Result, text and advice by check; and the exit status."""
        run = doctor(f"--root={machine.root}", "--json", *arguments, uid=uid)
        self.assertEqual(run.stderr, "")
        answer = json.loads(run.stdout)
        by_result = [check["result"] for check in answer["checks"]]
        self.assertEqual((answer["warnings"], answer["failures"]), (by_result.count("warn"), by_result.count("fail")))
        self.assertEqual(run.returncode, 1 if answer["failures"] else 0)
        for check in answer["checks"]:
            self.assertEqual(check["advice"] is None, check["result"] == "OK", check)
        names = [check["check"] for check in answer["checks"]]
        return {name: next(c for c in answer["checks"] if c["check"] == name) for name in names}

    def expect(self, check, result, *words, change=None, gpu=True, uid=None):
        """On a good machine with the change made, only that check has another result than OK."""
        with Machine(gpu=gpu) as machine:
            if change:
                change(machine)
            found = self.found(machine, uid=uid)
            self.assertEqual({name: c["result"] for name, c in found.items() if c["result"] != "OK"},
                             {} if result == "OK" else {check: result})
            for word in words:
                self.assertIn(word, found[check]["text"] + "; " + (found[check]["advice"] or ""))

    def test_a_good_machine(self):
        for gpu in (True, False):
            with Machine(gpu=gpu) as machine:
                run = doctor(f"--root={machine.root}", "--strict")
                self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
                self.assertEqual({line[:6] for line in run.stdout.splitlines()}, {"OK    "})
                self.assertGreaterEqual(len(run.stdout.splitlines()), 12)

    def test_lines_tell_what_to_do_and_strict_counts_warnings(self):
        with Machine() as machine:
            machine.write("proc/sys/vm/max_map_count", "65530\n")
            run = doctor(f"--root={machine.root}")
            self.assertEqual(run.returncode, 0)
            line = next(line for line in run.stdout.splitlines() if line.startswith("warn"))
            self.assertRegex(line, r"^warn  vm\.max_map_count +is 65530, .*; sysctl -w vm\.max_map_count=2147483642")
            self.assertEqual(doctor(f"--root={machine.root}", "--strict").returncode, 1)

    def test_cpu(self):
        def features(*lists):
            return lambda m: m.write("proc/cpuinfo", "".join(f"processor : {i}\nFeatures\t: {text}\n\n"
                                                             for i, text in enumerate(lists)))
        self.expect("cpu", "OK", "4 CPUs", "crc32")
        self.expect("cpu", "OK", "atomics", change=features(FEATURES + " atomics lrcpc"))
        self.expect("cpu", "warn", "without aes pmull sha1 sha2", change=features("fp asimd evtstrm crc32 cpuid"))
        self.expect("cpu", "warn", "without crc32", change=features(FEATURES, FEATURES.replace("crc32", "")))
        self.expect("cpu", "fail", "lacks asimd", change=features(FEATURES, FEATURES.replace("asimd ", "")))
        self.expect("cpu", "fail", "not an ARM64 machine",
                    change=lambda m: m.write("proc/cpuinfo", "processor : 0\nflags : fpu sse\n"))
        self.expect("cpu", "warn", change=lambda m: m.remove("proc/cpuinfo"))

    def test_kernel(self):
        for version, result in {"4.19.0": "OK", "5.10.0-rc1": "OK", "10.0": "OK", "4.18.20": "fail",
                                "3.10.0-1160.el7": "fail", "unknown": "warn"}.items():
            with self.subTest(version):
                self.expect("kernel", result, version,
                            change=lambda m: m.write("proc/sys/kernel/osrelease", version + "\n"))

    def test_page_size(self):
        self.expect("page-size", "OK", "4.0 KiB")
        for size in (16384, 65536):
            self.expect("page-size", "fail", "not supported yet", change=lambda m: m.page_size(size))
        self.expect("page-size", "warn", change=lambda m: m.remove("proc/self/auxv"))

    def test_binfmt(self):
        def entry(**values):
            return lambda m: m.binfmt("x86_64-arm64", binfmt_entry(**values))
        self.expect("binfmt", "OK", "flags POCF")
        self.expect("binfmt", "fail", "echo 1 >", change=entry(state="disabled"))
        self.expect("binfmt", "fail", "/usr/bin/qemu-x86_64", change=entry(interpreter="/usr/bin/qemu-x86_64"))
        for flag in "POCF":
            self.expect("binfmt", "fail", f"lacks the flags {flag}:", change=entry(flags="POCF".replace(flag, "")))
        self.expect("binfmt", "fail", "lacks the flags POCF", change=entry(flags=""))
        # Shared objects (static-PIE and most programs) are not matched.
        self.expect("binfmt", "fail", "does not match all", change=entry(mask=MASK.replace("fe", "ff")))
        self.expect("binfmt", "fail", "does not match all", change=entry(magic=MAGIC.replace("3e", "b7")))
        self.expect("binfmt", "fail", "does not exist", change=lambda m: m.remove("usr/bin/phybin"))
        self.expect("binfmt", "fail", "no entry", "update-binfmts --import",
                    change=lambda m: m.remove("proc/sys/fs/binfmt_misc/x86_64-arm64"))
        self.expect("binfmt", "fail", "is disabled", change=lambda m: m.binfmt("status", "disabled\n"))
        self.expect("binfmt", "fail", "is not mounted", change=lambda m: m.remove("proc/sys/fs/binfmt_misc"))

        def container(machine):
            machine.remove("proc/sys/fs/binfmt_misc")
            machine.write(".dockerenv", "")
        self.expect("binfmt", "warn", "in this container", change=container)

    def test_other_binfmt_entries(self):
        def other(**values):
            return lambda m: m.binfmt("qemu-x86_64", binfmt_entry(interpreter="/usr/bin/qemu-x86_64-static", **values))
        self.expect("binfmt-others", "fail", "qemu-x86_64 (/usr/bin/qemu-x86_64-static)", "--disable", change=other())
        self.expect("binfmt-others", "fail", "qemu-x86_64", change=other(magic="7f454c46", mask="ffffffff"))
        self.expect("binfmt-others", "fail", "qemu-x86_64", change=lambda m: m.binfmt(
            "qemu-x86_64", "enabled\ninterpreter /x\nflags: \noffset 18\nmagic 3e00\n"))
        self.expect("binfmt-others", "OK", change=other(state="disabled"))
        self.expect("binfmt-others", "OK", change=other(magic=MAGIC.replace("3e", "03")))

    def test_sysctls(self):
        def value(name, text):
            return lambda m: m.write("proc/sys/" + name.replace(".", "/"), text + "\n")
        for name, good, bad in (("vm.max_map_count", ["2147483642", "2147483647"], ["65530", "1048576"]),
                                ("vm.overcommit_memory", ["1"], ["0", "2"]),
                                ("kernel.pid_max", ["4194303", "4194304"], ["32768"])):
            for text in good:
                self.expect(name, "OK", text, change=value(name, text))
            for text in bad:
                self.expect(name, "warn", f"is {text},", f"sysctl -w {name}={good[0]}", change=value(name, text))
            self.expect(name, "warn", "cannot be read",
                        change=lambda m: m.remove("proc/sys/" + name.replace(".", "/")))

    def test_configuration(self):
        def text(content):
            return lambda m: m.write("etc/phybin.conf", content)
        self.expect("configuration", "OK", "not there", change=lambda m: m.remove("etc/phybin.conf"))
        self.expect("configuration", "OK", "is good", change=text("fast_math = on\ncache_size = 1G\n"))
        self.expect("configuration", "fail", "has 2 mistakes", "phybinctl config check",
                    change=text("fast_math = perhaps\ncache_size = lots\n"))
        if os.geteuid() == 0:
            self.expect("configuration", "fail", "Permission denied", "chmod 644", uid=12345,
                        change=lambda m: (m.root / "etc/phybin.conf").chmod(0o600))

    def test_loader(self):
        self.expect("loader", "warn", "libc6:amd64", change=lambda m: m.remove("lib64"))

        def musl(machine):
            machine.remove("lib64")
            machine.write("lib/ld-musl-x86_64.so.1", "")
        self.expect("loader", "OK", "/lib/ld-musl-x86_64.so.1", change=musl)

        def rootfs(machine):
            machine.remove("lib64")
            machine.write("etc/phybin.conf", "rootfs = /srv/x86\n")
            machine.write("srv/x86/lib64/ld-linux-x86-64.so.2", "")
        self.expect("loader", "OK", "/srv/x86/lib64", change=rootfs)

        def empty_rootfs(machine):
            rootfs(machine)
            machine.remove("srv/x86/lib64")
        self.expect("loader", "warn", "/srv/x86", change=empty_rootfs)

    def test_pci_bars(self):
        def log(*lines, file="var/log/kern.log"):
            return lambda m: m.write(file, LOG + "".join(f"[    2.0] {line}\n" for line in lines))
        bad = f"pci {PCI}: BAR 2: failed to assign [mem size 0x10000000 64bit pref]"
        self.expect("pci-bars", "OK", "no BAR error")  # an attempt fails in LOG, a later one succeeds
        self.expect("pci-bars", "fail", PCI, "BAR 2: failed to assign", "Above 4G", change=log(bad))
        self.expect("pci-bars", "fail", PCI, change=log(f"pci {PCI}: BAR 0: no space for [mem size 0x400000000]"))
        # As newer kernels say it.
        new = f"pci {PCI}: BAR 2 [mem size 0x10000000 64bit pref]: "
        self.expect("pci-bars", "fail", PCI, change=log(new + "can't assign; no space"))
        self.expect("pci-bars", "OK", change=log(new + "can't assign; no space", new.replace("size", "0x1-0x2") +
                                                 "assigned"))
        self.expect("pci-bars", "warn", "harmless",
                    change=log(f"pci {PCI}: BAR 5: failed to assign [io  size 0x0100]"))
        self.expect("pci-bars", "warn", "harmless",
                    change=log(f"pci {PCI}: BAR 6: no space for [mem size 0x00020000 pref]"))

        def other_card(machine):
            log(bad.replace(PCI, "0000:07:00.0"))(machine)
            machine.write("sys/bus/pci/devices/0000:07:00.0/vendor", "0x15b3\n")
        self.expect("pci-bars", "warn", "0000:07:00.0", change=other_card)
        # What an earlier start said is over.
        self.expect("pci-bars", "OK", change=lambda m: m.write("var/log/kern.log", f"x {bad}\n" + LOG))
        self.expect("pci-bars", "warn", "run it as root", change=lambda m: m.remove("var/log/kern.log"))

        def dmesg(machine):
            machine.remove("var/log/kern.log")
            machine.write("var/log/dmesg", f"[    2.0] {bad}\n")
        self.expect("pci-bars", "fail", PCI, change=dmesg)

    def test_virtual_display(self):
        def conf(text, file="etc/modprobe.d/amdgpu.conf"):
            return lambda m: m.write(file, text)
        name = "amdgpu-virtual-display"
        self.expect(name, "OK", "amdgpu.conf sets virtual_display=1")
        self.expect(name, "OK", change=conf("options amdgpu dc=0 \\\n  virtual_display=0000:03:00.0,1\n"))
        self.expect(name, "warn", "is not set", "options amdgpu virtual_display=1",
                    change=conf("options amdgpu dc=0\n#options amdgpu virtual_display=1\n"))
        self.expect(name, "warn", "is not set", change=conf("options radeon virtual_display=1\n"))
        self.expect(name, "warn", "virtual_display=0", change=conf("options amdgpu virtual_display=0\n"))
        for folder in ("run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d", "usr/local/lib/modprobe.d"):
            def elsewhere(machine):
                machine.remove("etc/modprobe.d/amdgpu.conf")
                conf("options amdgpu virtual_display=1\n", f"{folder}/gpu.conf")(machine)
            self.expect(name, "OK", f"/{folder}/gpu.conf", change=elsewhere)

        def masked(machine):
            conf("options amdgpu virtual_display=1\n", "usr/lib/modprobe.d/amdgpu.conf")(machine)
            conf("")(machine)
        self.expect(name, "warn", "is not set", change=masked)

        def command_line(machine):
            machine.remove("etc/modprobe.d/amdgpu.conf")
            machine.write("proc/cmdline", "ro amdgpu.virtual_display=1 quiet\n")
        self.expect(name, "OK", "/proc/cmdline", change=command_line)
        self.expect(name, "warn", "loaded without", "update-initramfs",
                    change=lambda m: m.write("sys/module/amdgpu/parameters/virtual_display", "(null)\n"))

    def test_performance_level(self):
        for level, result in {"auto": "OK", "high": "OK", "low": "warn", "manual": "warn",
                              "profile_min_sclk": "warn"}.items():
            self.expect("amdgpu-power-card0", result, level,
                        change=lambda m: m.write(f"{GPU}/power_dpm_force_performance_level", level + "\n"))

    def test_device_access(self):
        self.expect("dev/kfd", "OK", "may be read and written")
        self.expect("dev/kfd", "fail", "does not exist", change=lambda m: m.remove("dev/kfd"))
        self.expect("dev/dri", "fail", "renderD", change=lambda m: m.remove("dev/dri/renderD128"))
        self.expect("dev/kfd", "fail", "no compute driver", change=lambda m: m.remove("sys/class/kfd"))
        if os.geteuid() == 0:
            def group_only(name):
                def change(machine):
                    (machine.root / name).chmod(0o660)
                    os.chown(machine.root / name, 0, 44)  # video
                return change
            self.expect("dev/kfd", "fail", "Permission denied", "usermod -aG video", uid=12345,
                        change=group_only("dev/kfd"))
            self.expect("dev/dri/renderD128", "fail", "usermod -aG video", uid=12345,
                        change=group_only("dev/dri/renderD128"))

    def test_a_root_that_is_none(self):
        run = doctor("--root=/nonexistent")
        self.assertEqual((run.returncode, run.stdout), (2, ""))


class Running(unittest.TestCase):
    """What is not on file: the daemon and programs."""

    def check(self, name, *arguments):
        with Machine() as machine:
            run = doctor(f"--root={machine.root}", "--json", *arguments)
            return {check["check"]: check for check in json.loads(run.stdout)["checks"]}.get(name), run.returncode

    def test_daemon(self):
        with Daemon() as daemon:
            for name in ("daemon", "version", "cache"):
                found, status = self.check(name, f"--socket={daemon.socket}")
                self.assertEqual(found["result"], "OK", found)
            self.assertIn(str(daemon.cache), found["text"])
        found, status = self.check("daemon", f"--socket={daemon.socket}")
        self.assertEqual((found["result"], status), ("warn", 0))

    def answering(self, **status):
        """What doctor finds of a daemon with that status."""
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, Machine() as machine:
            listener.bind(folder + "/socket")
            listener.listen(1)
            listener.settimeout(60)
            with subprocess.Popen([PHYBINCTL, "doctor", f"--root={machine.root}", f"--socket={folder}/socket",
                                   "--json"], stdout=subprocess.PIPE, text=True) as process:
                channel, _ = listener.accept()
                channel.recv(1 << 16)
                version = subprocess.run([PHYBINCTL, "--version"], capture_output=True, text=True).stdout.split()[1]
                channel.send(json.dumps({"ok": True, "version": version, "socket": "/s", "compiler": "/usr/bin/phybin",
                                         "translator_build": "00", "cache": {
                                             "directory": "/c", "bytes": 1, "limit_bytes": 4 << 30, "writable": True,
                                             "free_bytes": 1 << 40}} | status).encode())
                channel.close()
                output = process.stdout.read()
        return {check["check"]: check for check in json.loads(output)["checks"]}

    def test_what_the_daemon_says(self):
        found = self.answering()
        self.assertEqual({check["result"] for check in found.values()}, {"OK"})
        self.assertEqual(self.answering(version="99.0")["version"]["result"], "fail")
        self.assertEqual(self.answering(translator_build=None)["compiler"]["result"], "fail")
        cache = {"directory": "/c", "bytes": 1, "limit_bytes": 4 << 30, "writable": True, "free_bytes": 1 << 40}
        self.assertIn("not writable", self.answering(cache=cache | {"writable": False})["cache"]["text"])
        self.assertEqual(self.answering(cache=cache | {"bytes": 5 << 30})["cache"]["result"], "fail")
        self.assertEqual(self.answering(cache=cache | {"free_bytes": 1 << 20})["cache"]["result"], "warn")

    def test_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            def script(text):
                path = Path(folder) / "worker"
                path.write_text("#!/bin/sh\n" + text)
                path.chmod(0o755)
                return self.check("run-by-worker", f"--worker={path} --option")[0]
            if platform.machine() == "x86_64":
                found, _ = self.check("run-by-kernel", "--worker=/nonexistent")
                self.assertEqual(found["result"], "OK", found)
                self.assertEqual(script('[ "$1" = --option ] && exec "$2"')["result"], "OK")
            for text, words in (("exit 42", "wrote something else"), ("echo x86_64 runs; exit 1", "exit status 1"),
                                ("echo broken >&2; exit 127", "exit status 127 (broken)"), ("kill -9 $$", "Killed")):
                found = script(text)
                self.assertEqual(found["result"], "fail", text)
                self.assertIn(words, found["text"])
            found, status = self.check("run-by-worker", "--worker=/nonexistent")
            self.assertEqual((found["result"], status), ("fail", 1))
            self.assertIn("No such file", found["text"])

    @unittest.skipUnless(WORKER.exists(), "the worker is not built")
    def test_the_worker(self):
        emulator = "" if platform.machine() == "aarch64" else shutil.which("qemu-aarch64") + " -cpu cortex-a72 "
        found, _ = self.check("run-by-worker", f"--worker={emulator}{WORKER}")
        self.assertEqual(found["result"], "OK", found)


if __name__ == "__main__":
    unittest.main()
