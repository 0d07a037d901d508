"""phybinctl gpu on recorded machines."""

import json
import subprocess
import unittest

from phybind import PHYBINCTL
from recorded_machine import GPU, PCI, Machine

MIB = 1 << 20
BUDDY = """default_page_size: 2048KiB
chunk_size: 4KiB, total: 16368MiB, free: 4198MiB, clear_free: 0MiB
order-20 free:     4096 MiB, blocks: 1
order- 9 free:      100 MiB, blocks: 50
order- 8 free:        1 MiB, blocks: 1
order- 2 free:     1008 KiB, blocks: 63
order- 0 free:       16 KiB, blocks: 4
reserved:
0x00000003ff000000-0x00000003ff400000: 4194304
"""
LIST = """0x0000000000000000-0x0000000000000100: 256: used
0x0000000000000100-0x0000000000000180: 128: free
0x0000000000000180-0x0000000000000200: 128: used
0x0000000000000200-0x0000000000000600: 1024: free
total: 1536, used 384 free 1152
man size:4186112 pages, ram usage:1MB, vis usage:1MB
"""


class Gpu(unittest.TestCase):
    def gpu(self, machine, *arguments):
        return subprocess.run([PHYBINCTL, "gpu", f"--root={machine.root}", *arguments], capture_output=True,
                              text=True, timeout=120)

    def cards(self, machine, *arguments, status=0):
        run = self.gpu(machine, "--json", *arguments)
        self.assertEqual((run.returncode, run.stderr), (status, ""), run.stdout)
        return json.loads(run.stdout)["cards"]

    def test_memory(self):
        with Machine() as machine:
            (card,) = self.cards(machine)
            self.assertEqual((card["name"], card["pci"], card["vendor"], card["device"], card["driver"],
                              card["product"]), ("card0", PCI, "1002", "73bf", "amdgpu", "Instinct"))
            self.assertEqual(card["vram"], {"total_bytes": 16 << 30, "used_bytes": 4 << 30})
            self.assertEqual(card["vis_vram"], {"total_bytes": 256 << 20, "used_bytes": 64 << 20})
            self.assertEqual(card["gtt"], {"total_bytes": 32 << 30, "used_bytes": 1 << 30})
            self.assertIsNone(card["fragmentation"])
            text = self.gpu(machine).stdout
            self.assertIn("4.0 GiB of 16.0 GiB (25 %)", text)
            self.assertRegex(text, "fragmentation: +not told")

    def test_what_is_missing_is_not_told_rather_than_zero(self):
        with Machine() as machine:
            for kind in ("vram", "gtt"):
                machine.remove(f"{GPU}/mem_info_{kind}_used")
            (card,) = self.cards(machine)
            self.assertIsNone(card["vram"])
            self.assertIsNone(card["gtt"])
            self.assertEqual(self.gpu(machine).stdout.count("not told"), 3)

    def test_warnings(self):
        with Machine() as machine:
            machine.write(f"{GPU}/mem_info_vram_used", f"{int(0.9 * (16 << 30)) + 1}\n")
            (card,) = self.cards(machine, status=1)
            self.assertEqual(card["warnings"], ["VRAM is used to 90 %"])
            (card,) = self.cards(machine, "--warn=91")
            self.assertEqual(card["warnings"], [])
            (card,) = self.cards(machine, "--warn", "3", status=1)
            self.assertEqual(len(card["warnings"]), 3)
            for value in ("0", "101", "x", "", "nan"):
                self.assertEqual(self.gpu(machine, f"--warn={value}").returncode, 2, value)

    def test_fragmentation(self):
        with Machine() as machine:
            machine.write("sys/kernel/debug/dri/0/amdgpu_vram_mm", BUDDY)
            (card,) = self.cards(machine)
            small = MIB + 63 * 16384 + 4 * 4096
            self.assertEqual(card["fragmentation"], {
                "free_bytes": 4096 * MIB + 100 * MIB + small, "small_pieces_bytes": small, "piece_bytes": 2 * MIB,
                "largest_piece_bytes": 4096 * MIB})
            for new, old in (("blocks", "pages"), ("blocks: ", "free_blocks: ")):
                machine.write("sys/kernel/debug/dri/0/amdgpu_vram_mm", BUDDY.replace(new, old))
                self.assertEqual(self.cards(machine)[0]["fragmentation"], card["fragmentation"])
            machine.write("sys/kernel/debug/dri/0/amdgpu_vram_mm", LIST)
            (card,) = self.cards(machine)
            self.assertEqual(card["fragmentation"], {"free_bytes": 1152 * 4096, "small_pieces_bytes": 128 * 4096,
                                                     "piece_bytes": 2 * MIB, "largest_piece_bytes": 1024 * 4096})
            self.assertIn("11 % of 4.5 MiB free VRAM", self.gpu(machine).stdout)
            machine.write("sys/kernel/debug/dri/0/amdgpu_vram_mm", "something else\n")
            self.assertIsNone(self.cards(machine)[0]["fragmentation"])
            machine.remove("sys/kernel/debug/dri/0")
            machine.write(f"sys/kernel/debug/dri/{PCI}/amdgpu_vram_mm", LIST)
            self.assertIsNotNone(self.cards(machine)[0]["fragmentation"])

    def test_processes(self):
        second = "0000:83:00.0"
        with Machine() as machine:
            machine.add_gpu(1, second)
            for pid, name in ((700, "solver"), (800, "viewer")):
                machine.write(f"proc/{pid}/comm", name + "\n")
                machine.write(f"proc/{pid}/status", f"Name:\t{name}\nUid:\t1000\t1000\t1000\t1000\n")
            # The compute driver knows of more than the descriptors show, and of another card.
            machine.write(f"sys/class/kfd/kfd/proc/700/vram_{machine.gpu_id(0)}", f"{3 << 30}\n")
            machine.write(f"sys/class/kfd/kfd/proc/700/vram_{machine.gpu_id(1)}", f"{1 << 30}\n")
            fdinfo = f"pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t{PCI}\ndrm-client-id:\t%d\n" \
                     "drm-memory-vram:\t%d KiB\ndrm-memory-gtt: \t2048 KiB\n"
            machine.write("proc/700/fdinfo/4", fdinfo % (11, 1 << 20))
            # Two openings, one of them with two descriptors, which count once.
            machine.write("proc/800/fdinfo/5", fdinfo % (12, 1024))
            machine.write("proc/800/fdinfo/6", fdinfo % (12, 1024))
            machine.write("proc/800/fdinfo/7", fdinfo.replace("memory", "resident") % (13, 3072))
            machine.link("proc/800/fd/7", "/dev/dri/renderD128")
            # Not a card, whatever it says.
            machine.write("proc/800/fdinfo/8", fdinfo % (14, 1 << 20))
            machine.link("proc/800/fd/8", "/tmp/file")
            first, other = self.cards(machine)
            self.assertEqual([(p["pid"], p["uid"], p["program"], p["vram_bytes"], p["gtt_bytes"])
                              for p in first["processes"]],
                             [(700, 1000, "solver", 3 << 30, 2 << 20), (800, 1000, "viewer", 4 << 20, 4 << 20)])
            self.assertEqual((other["pci"], [(p["pid"], p["vram_bytes"]) for p in other["processes"]]),
                             (second, [(700, 1 << 30)]))
            self.assertRegex(self.gpu(machine).stdout, r"700 +\S+ +solver +3\.0 GiB +2\.0 MiB")

    def test_no_card_and_no_root(self):
        with Machine(gpu=False) as machine:
            self.assertEqual(self.cards(machine), [])
            self.assertEqual(self.gpu(machine).stdout, "no graphics card\n")
        run = subprocess.run([PHYBINCTL, "gpu", "--root=/nonexistent"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main()
