"""The workloads, their sizes, and what other translators need for the same kind of work.

A size makes the ARM64 program execute 50 to 200 million instructions: enough that the translation of the program itself,
which is included, does not dominate, and few enough for a software emulator.

The figures of FEX (August 2026, TSO ordering on, no code cache), box64 0.4.5 (no TSO ordering, libc replaced by native
code) and qemu 7.2 were measured by this project under the same method.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    name: str
    size: int
    what: str
    box64: float | None
    fex: float
    qemu: float
    source: str = ""
    hpc: bool = False
    v3: bool = False
    threads: bool = False

    def file(self) -> str:
        return self.source or self.name + ".c"


V3 = "x86-64-v3: AVX2, FMA"

WORKLOADS = [
    Workload("calls", 60, "recursion, qsort with a callback", 15.13, 3.03, 14.21),
    Workload("cg", 20, "sparse conjugate gradient, CSR", 1.59, 2.28, 20.63, hpc=True),
    Workload("cg-v3", 20, "the same, " + V3, 1.56, 2.25, 18.66, "cg.c", hpc=True, v3=True),
    Workload("cxx", 70, "map, string, virtual calls, exceptions", 4.96, 5.76, 14.64, "cxx.cpp"),
    Workload("dgemm", 30, "blocked matrix product", 1.62, 1.73, 69.28, hpc=True),
    Workload("dgemm-v3", 30, "the same, " + V3, 2.13, 3.18, 98.64, "dgemm.c", hpc=True, v3=True),
    Workload("interp", 90, "bytecode interpreter, computed goto", 4.73, 4.44, 21.72),
    Workload("nbody", 150000, "scalar double, sqrt, division", 1.68, 3.02, 37.91, hpc=True),
    Workload("nbody-v3", 150000, "the same, " + V3, 1.98, 3.82, 45.09, "nbody.c", hpc=True, v3=True),
    Workload("sha256", 30000, "rotate, xor, add on 32 bits", 1.52, 1.97, 4.24),
    Workload("sort", 25, "quicksort, hash table", 1.29, 1.75, 5.16),
    Workload("strings", 60, "memcpy, strstr, strtok, strlen, memchr", 1.14, 4.44, 15.64),
    Workload("threads", 15000, "mutex and atomic addition, two threads", 1.48, 9.50, 15.68, threads=True),
    Workload("triad", 400, "STREAM triad and dot product", 1.53, 1.69, 27.64, hpc=True),
    Workload("triad-v3", 400, "the same, " + V3, 1.22, 1.89, 39.79, "triad.c", hpc=True, v3=True),
    # box64 computes long double as double: its results are wrong, so it has no figure.
    Workload("x87", 25, "long double", None, 1.34, 1.99),
]

# Total ARM64 instructions, in millions, from exec to exit without any cache: box64, FEX, qemu.
COLD_STARTS = {
    "empty dynamic program": (11.5, 129.6, 93.0),
    "/bin/true": (12.8, 128.1, 94.3),
    "python3 -S -c pass": (893.0, 1233.0, None),
}
