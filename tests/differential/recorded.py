"""The recorded results: where they are, and how they are packed. Used by `record` and `replay`."""

import lzma
import os
import platform
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = HERE / "recorded"
DIFFTEST = ROOT / "build/native/tests/differential/difftest"
WORKER = ROOT / "build/arm64/worker/phybin"

# The parts and how they are recorded: what README.md says is not exact is left out, as where the CPU itself is asked.
PARTS = {
    "instructions": ["--tolerate", "ftz", "--count", "24", "--sequences", "4000", "--sequence-states", "2"],
    "faults": ["--faults", "--tolerate", "ftz", "--tolerate", "fault-progress", "--tolerate", "lock-address", "--count",
               "6", "--sequences", "1500", "--sequence-states", "2"],
}


def on_arm64(cpu):
    """What runs an ARM64 program on this machine."""
    return [] if platform.machine() == "aarch64" else ["qemu-aarch64", "-cpu", cpu]


def packed(part):
    return FOLDER / f"{part}.xz"


def pack(source, part):
    FOLDER.mkdir(exist_ok=True)
    target = packed(part)
    partial = target.with_suffix(".new")
    partial.write_bytes(lzma.compress(source.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    os.replace(partial, target)


def unpack(part, target):
    with lzma.open(packed(part)) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file)
