"""Tables in Markdown and a bar chart in SVG, from measured figures."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from workloads import Workload


@dataclass
class Ratio:
    """What one workload executed, start-up subtracted; `failure` says why there is no figure."""

    workload: Workload
    native: int = 0
    phybin: int = 0
    polls: int = 0
    failure: str = ""

    def ratio(self) -> float | None:
        return None if self.failure else self.phybin / self.native


def geometric_mean(values: list[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else None


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def markdown_table(header: list[str], rows: list[list[str]], text_columns: int = 1) -> str:
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i < text_columns else "--:" for i in range(len(header))) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def ratio_table(ratios: list[Ratio]) -> str:
    rows = []
    for r in ratios:
        w = r.workload
        box64 = "wrong" if w.box64 is None else number(w.box64)
        if r.failure:
            rows.append([f"{w.name}: {w.what}", "", "", "fails", number(w.fex), box64, number(w.qemu)])
            continue
        best = min(v for v in (w.fex, w.box64) if v is not None)
        ours = number(r.ratio())
        rows.append([f"{w.name}: {w.what}", f"{r.native / 1e6:.1f}", f"{r.phybin / 1e6:.1f}",
                     f"**{ours}**" if r.ratio() < best else ours, number(w.fex), box64, number(w.qemu)])
    done = [r for r in ratios if not r.failure]
    for name, group in (("geometric mean", done), ("geometric mean, HPC", [r for r in done if r.workload.hpc])):
        if group:
            means = [geometric_mean(v) for v in ([r.ratio() for r in group], [r.workload.fex for r in group],
                                                 [r.workload.box64 for r in group], [r.workload.qemu for r in group])]
            rows.append([f"*{name}*", "", "", *(number(m) for m in means)])
    return markdown_table(["program", "native, M", "PhyBin, M", "PhyBin", "FEX", "box64", "qemu"], rows)


def chart(ratios: list[Ratio]) -> str:
    """Bars for PhyBin, FEX and box64, linear, cut at `limit`; longer ones carry their number. qemu is off the scale."""
    limit, scale, left, bar, gap, top = 6.0, 90, 90, 9, 12, 50
    series = [("PhyBin", "#1b6ca8", lambda r: r.ratio()), ("FEX", "#c98b2b", lambda r: r.workload.fex),
              ("box64", "#9aa0a6", lambda r: r.workload.box64)]
    rows = [r for r in ratios if not r.failure]
    height = top + len(rows) * (3 * bar + gap) + 20
    width = left + int(limit * scale) + 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{left}" y="16" font-size="13">ARM64 instructions executed, relative to a native ARM64 program '
           '(shorter is better)</text>']
    for i, (name, colour, _) in enumerate(series):
        x = left + i * 80
        out.append(f'<rect x="{x}" y="25" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="34">{name}'
                   '</text>')
    for tick in range(int(limit) + 1):
        x = left + tick * scale
        out.append(f'<line x1="{x}" y1="{top - 6}" x2="{x}" y2="{height - 16}" stroke="'
                   f'{"#888888" if tick == 1 else "#dddddd"}"/><text x="{x}" y="{height - 4}" text-anchor="middle">'
                   f'{tick}</text>')
    y = top
    for r in rows:
        out.append(f'<text x="{left - 6}" y="{y + 1.5 * bar + 4:.0f}" text-anchor="end">{escape(r.workload.name)}'
                   '</text>')
        for _, colour, value_of in series:
            value = value_of(r)
            if value is not None:
                length = min(value, limit) * scale
                out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 1}" fill="{colour}"/>'
                           f'<text x="{left + length + 3:.1f}" y="{y + bar - 1.5}" font-size="9">{value:.2f}</text>')
            y += bar
        y += gap
    return "\n".join(out) + "\n</svg>\n"


def cost_table(ratios: list[Ratio], relaxed: dict[str, list[float | None]], names: list[str]) -> str:
    """What exactness and safepoints cost: ratios under relaxed options, and polls in per cent of all instructions."""
    rows = []
    for r in ratios:
        if not r.failure:
            values = relaxed.get(r.workload.name, [None] * len(names))
            rows.append([r.workload.name, number(r.ratio()), *(number(v) for v in values),
                         f"{100 * r.polls / r.phybin:.1f} %"])
    return markdown_table(["program", "default", *(f"`{n}`" for n in names), "polls"], rows)


def cold_start_table(rows: list[tuple[str, float | None, float | None, tuple]]) -> str:
    cells = []
    for name, native, phybin, (box64, fex, qemu) in rows:
        cells.append([name, number(native), "fails" if phybin is None else number(phybin, 1), number(fex, 1),
                      number(box64, 1), number(qemu, 1)])
    return markdown_table(["program", "native, M", "PhyBin, M", "FEX, M", "box64, M", "qemu, M"], cells)
