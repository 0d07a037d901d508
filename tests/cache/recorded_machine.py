"""Machines as `phybinctl --root` sees them: a folder with the files of /proc, /sys and /etc that are looked at. A test
starts from a machine where everything is as it should be and changes what it is about."""

import shutil
import struct
import tempfile
from pathlib import Path

FEATURES = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
MAGIC = "7f454c4602010100000000000000000002003e00"
MASK = "ffffffffffffff000000000000000000feffffff"
PCI = "0000:03:00.0"
GPU = f"sys/devices/pci0000:00/{PCI}"
LOG = """[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x701f6633]
[    0.000000] Linux version 4.19.90-17.ky10.aarch64 (gcc version 7.3.0)
[    1.000000] pci 0000:03:00.0: BAR 0: no space for [mem size 0x400000000 64bit pref]
[    1.000001] pci 0000:03:00.0: BAR 0: failed to assign [mem size 0x400000000 64bit pref]
[    1.000002] pci 0000:03:00.0: BAR 0: assigned [mem 0x2000000000-0x23ffffffff 64bit pref]
"""


def binfmt_entry(interpreter="/usr/lib/phybin/phybin-binfmt-P", flags="POCF", state="enabled", magic=MAGIC, mask=MASK):
    return f"{state}\ninterpreter {interpreter}\nflags: {flags}\noffset 0\nmagic {magic}\nmask {mask}\n"


class Machine:
    """Use in a `with` statement. `gpu`: it has an AMD GPU."""

    def __init__(self, gpu=True):
        self.root = Path(tempfile.mkdtemp(prefix="phybin-machine-"))
        self.root.chmod(0o755)
        self.write("proc/cpuinfo", "".join(f"processor\t: {i}\nFeatures\t: {FEATURES}\nCPU part\t: 0x663\n\n"
                                           for i in range(4)))
        self.write("proc/sys/kernel/osrelease", "4.19.90-17.ky10.aarch64\n")
        self.page_size(4096)
        self.write("proc/cmdline", "root=/dev/sda2 ro\n")
        self.write("proc/sys/fs/binfmt_misc/status", "enabled\n")
        self.binfmt("x86_64-arm64", binfmt_entry())
        self.binfmt("python3.7", "enabled\ninterpreter /usr/bin/python3.7\nflags: \noffset 0\nmagic 420d0d0a\n")
        self.binfmt("jar", "enabled\ninterpreter /usr/bin/jexec\nflags: \nextension .jar\n")
        self.write("usr/bin/phybin", "the worker")
        (self.root / "usr/lib/phybin").mkdir(parents=True)
        (self.root / "usr/lib/phybin/phybin-binfmt-P").symlink_to("../../bin/phybin")
        self.write("proc/sys/vm/max_map_count", "2147483642\n")
        self.write("proc/sys/vm/overcommit_memory", "1\n")
        self.write("proc/sys/kernel/pid_max", "4194303\n")
        self.write("etc/phybin.conf", "# as installed\n")
        self.write("lib64/ld-linux-x86-64.so.2", "")
        self.write("var/log/kern.log", LOG)
        if gpu:
            self.add_gpu()

    def add_gpu(self, number=0, pci=PCI):
        device = f"sys/devices/pci0000:00/{pci}"
        for name, text in {
            "vendor": "0x1002\n", "device": "0x73bf\n", "class": "0x038000\n", "product_name": "Instinct\n",
            "uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME={pci}\n",
            "power_dpm_force_performance_level": "auto\n",
            "mem_info_vram_total": f"{16 << 30}\n", "mem_info_vram_used": f"{4 << 30}\n",
            "mem_info_vis_vram_total": f"{256 << 20}\n", "mem_info_vis_vram_used": f"{64 << 20}\n",
            "mem_info_gtt_total": f"{32 << 30}\n", "mem_info_gtt_used": f"{1 << 30}\n",
        }.items():
            self.write(f"{device}/{name}", text)
        self.write("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n")
        bus, slot, function = int(pci[5:7], 16), int(pci[8:10], 16), int(pci[11], 16)
        node = f"sys/class/kfd/kfd/topology/nodes/{number + 1}"
        self.write(f"{node}/gpu_id", f"{self.gpu_id(number)}\n")
        self.write(f"{node}/properties",
                   f"cpu_cores_count 0\nlocation_id {bus << 8 | slot << 3 | function}\ndomain 0\n")
        self.link(f"sys/class/drm/card{number}/device", f"../../../devices/pci0000:00/{pci}")
        self.write(f"sys/class/drm/card{number}-DP-1/status", "disconnected\n")
        self.link(f"sys/bus/pci/devices/{pci}", f"../../../devices/pci0000:00/{pci}")
        self.write("sys/module/amdgpu/parameters/virtual_display", "1\n")
        self.write("etc/modprobe.d/amdgpu.conf", "# servers\noptions amdgpu virtual_display=1\n")
        self.write("dev/kfd", "")
        self.write(f"dev/dri/renderD{128 + number}", "")
        for name in ["dev/kfd", f"dev/dri/renderD{128 + number}"]:
            (self.root / name).chmod(0o666)

    @staticmethod
    def gpu_id(number):
        return 45231 + number

    def page_size(self, size):
        self.write_bytes("proc/self/auxv", struct.pack("<6Q", 16, 0xff, 6, size, 0, 0))

    def binfmt(self, name, text):
        self.write(f"proc/sys/fs/binfmt_misc/{name}", text)

    def write(self, path, text):
        self.write_bytes(path, text.encode())

    def write_bytes(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def link(self, path, target):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def remove(self, path):
        file = self.root / path
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)
