#!/usr/bin/env python3
"""The table "ARM64 instructions per x86 instruction": each row of instruction_rows.py assembled, translated alone with all
flags wanted, and compared with FEX. The translation is done by phybin_count_code (tests/bench/count_code.cpp), which
says how many instructions run without the entry and the exit of a region and without cold paths.

    tests/bench/instruction_table.py            the table
    tests/bench/instruction_table.py --list     the code behind each number
    tests/bench/instruction_table.py --worse    the same for the rows where FEX needs less
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import measure
from instruction_rows import GROUPS
from measure import Failure
from report import markdown_table

COUNTER = measure.ROOT / "build/arm64/tests/bench/phybin_count_code"


def assemble(texts: list[str]) -> list[str]:
    """The hexadecimal bytes of each text."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.s", Path(folder) / "rows.o"
        # One section a row: dumped by name, so no row depends on the length of another.
        body = "".join(f'.section .row{i},"ax"\n{t.replace(";", chr(10))}\n' for i, t in enumerate(texts))
        source.write_text(".intel_syntax noprefix\n" + body)
        result = subprocess.run([measure.PREFIX["amd64"] + "as", "-o", target, source], capture_output=True, text=True)
        if result.returncode:
            raise Failure(result.stderr)
        dump = subprocess.run([measure.PREFIX["amd64"] + "objdump", "-s", target], capture_output=True, text=True,
                              check=True).stdout
    codes = [""] * len(texts)
    row = None
    for line in dump.splitlines():
        if header := re.match(r"Contents of section \.row(\d+):", line):
            row = int(header.group(1))
        elif line.startswith("Contents"):
            row = None
        elif row is not None and line.startswith(" "):
            # " offset xxxxxxxx xxxxxxxx  ascii": the words stand in a field of 36 columns.
            codes[row] += line.split(" ", 2)[2][:35].replace(" ", "")
    return codes


def _answers(codes: list[str], options: list[str]) -> list[str]:
    """What phybin_count_code prints for each code."""
    result = subprocess.run(["qemu-aarch64", COUNTER, *options], input="\n".join(codes) + "\n", capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{COUNTER}: {result.stderr.strip()}")
    answers = result.stdout.splitlines()
    if len(answers) != len(codes):
        raise Failure(f"{COUNTER}: {len(answers)} answers for {len(codes)} rows")
    return answers


def _verdict(ours: str, fex: int) -> str:
    if ours == "-":
        return "not translated"
    if not ours.isdigit():
        return "helper"
    return "worse" if int(ours) > fex else "better" if int(ours) < fex else ""


def markdown() -> str:
    parts = []
    verdicts: Counter = Counter()
    for title, rows in GROUPS:
        codes = assemble([row.code for row in rows])
        floating = any(row.floating for row in rows)
        lse = ["--lse"] if title == "Locked" else []
        exact = _answers(codes, lse)
        fast = _answers(codes, ["--fast-math"]) if floating else exact
        lines = []
        for row, ours, ours_fast in zip(rows, exact, fast):
            verdict = _verdict(ours_fast, row.fex)
            verdicts[verdict] += 1
            text = [ours, ours_fast] if floating else [ours]
            lines.append([f"`{row.name}`", *text, str(row.fex), verdict])
        header = ["x86", "PhyBin", *(["with `--fast-math`"] if floating else []), "FEX", ""]
        parts.append(f"**{title}**\n\n" + markdown_table(header, lines))
    summary = (f"Of {sum(verdicts.values())} rows PhyBin needs fewer instructions than FEX in {verdicts['better']}, as "
               f"many in {verdicts['']}, more in {verdicts['worse']}")
    if verdicts["helper"]:
        summary += f"; {verdicts['helper']} call a helper of the runtime (`+`: its instructions are not counted)"
    if verdicts["not translated"]:
        summary += f"; {verdicts['not translated']} are not translated"
    return summary + ".\n\n" + "\n\n".join(parts)


def listing(only_worse: bool) -> str:
    """The code of each row, for people who look for what to improve."""
    text = []
    for title, rows in GROUPS:
        options = ["--words"] + (["--lse"] if title == "Locked" else [])
        options += ["--fast-math"] if any(row.floating for row in rows) else []
        answers = _answers(assemble([row.code for row in rows]), options)
        for row, answer in zip(rows, answers):
            number, *words = answer.split()
            if only_worse and _verdict(number, row.fex) != "worse":
                continue
            text.append(f"{row.code}: {number}, FEX {row.fex}")
            text += ["    " + line for line in measure.disassemble(0, words)] if words else []
    return "\n".join(text)


if __name__ == "__main__":
    try:
        if "--list" in sys.argv:
            print(listing(False))
        elif "--worse" in sys.argv:
            print(listing(True))
        else:
            print(markdown())
    except Failure as failure:
        sys.exit(str(failure))
