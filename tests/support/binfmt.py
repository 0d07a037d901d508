"""Namespaces in which the kernel starts ARM64 programs, and on demand x86_64 ones, on an x86_64 machine.

Linux 6.7 and newer has a binfmt_misc of its own in each user namespace: the machine's registrations are neither seen
nor changed.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

INSIDE = "PHYBIN_TEST_NAMESPACE"
# All but the byte of the ABI: static programs with indirect functions are of ABI 3 (GNU), others of 0.
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
ARM64_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
X86_64_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"


def arm64_entry(emulator: str) -> str:
    """The registration of ARM64 programs: `emulator` runs them."""
    return f":arm64:M::{ARM64_MAGIC}:{MASK}:{emulator}:FP"


def x86_64_entry(worker: str) -> str:
    """The registration of x86_64 programs; the worker's name ends in -binfmt-P."""
    return f":x86_64:M::{X86_64_MAGIC}:{MASK}:{worker}:P"


def find_emulator() -> str:
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not emulator:
        sys.exit("qemu-aarch64 is not installed")
    return emulator


def enter_namespace() -> None:
    """Starts this script again in a namespace of its own, where register_arm64() can be called."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    command = ["unshare", "-mpf", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    if os.getuid() != 0:
        os.execvp("unshare", ["unshare", "-Ur", *command[1:]])
    # All users are mapped, so that tests can be another one: the namespace waits until its maps are written.
    child = subprocess.Popen(["unshare", "-U", "sh", "-c", 'read go; exec "$@"', "sh", *command], stdin=subprocess.PIPE)
    while os.readlink(f"/proc/{child.pid}/ns/user") == os.readlink("/proc/self/ns/user"):
        time.sleep(0.01)
    for kind in ("uid", "gid"):
        Path(f"/proc/{child.pid}/{kind}_map").write_text("0 0 65536")
    child.stdin.write(b"\n")
    child.stdin.flush()
    sys.exit(child.wait())


def register_arm64() -> None:
    """Inside the namespace: ARM64 programs are run by qemu-aarch64. Nothing to do on an ARM64 machine."""
    if os.uname().machine == "aarch64":
        return
    subprocess.run(["mount", "-t", "binfmt_misc", "none", "/proc/sys/fs/binfmt_misc"], check=True)
    with open("/proc/sys/fs/binfmt_misc/register", "wb", buffering=0) as file:
        file.write(arm64_entry(find_emulator()).encode())


def marked_emulator(folder: Path) -> Path:
    """A copy of qemu, itself an x86_64 program, that x86_64_entry() does not match: the padding of its ELF header, which
    the kernel ignores, has a mark. It ends the chain of interpreters."""
    copy = folder / "qemu"
    if not copy.exists():
        data = bytearray(Path(find_emulator()).read_bytes())
        data[15] = 1
        copy.write_bytes(data)
        copy.chmod(0o755)
    return copy


def namespace(*entries: str) -> list[str]:
    """The beginning of a command that runs in a new namespace with these registrations."""
    setup = ("b=/proc/sys/fs/binfmt_misc; mount -t binfmt_misc none $b || exit 99; n=$1; shift; "
             "while [ $n -gt 0 ]; do printf '%s' \"$1\" > $b/register || exit 99; shift; n=$((n - 1)); done; exec \"$@\"")
    return ["unshare", "-Urmpf", "--kill-child", "--mount-proc", "sh", "-c", setup, "sh", str(len(entries)), *entries]


def translating_namespace(emulator: Path, worker: Path) -> list[str]:
    """namespace() where the kernel starts the worker for every x86_64 program, that of the command too."""
    return namespace(arm64_entry(str(emulator)), x86_64_entry(str(worker)))
