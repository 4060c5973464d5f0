"""A drawing of the neighbours' times: one line for each measure, on a scale of powers of ten."""

import math
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, TOP = 900, 18, 330, 40
LEAST, MOST = -1.0, 5.0


def place(milliseconds):
    power = min(MOST, max(LEAST, math.log10(max(milliseconds, 1e-3))))
    return LEFT + (power - LEAST) / (MOST - LEAST) * (WIDTH - LEFT - 20)


def write(path, results):
    lines = [(r["name"], name, sorted(times)) for r in results
             for name, times in r["series"].items() if times]
    height = TOP + ROW * len(lines) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>',
             '<text x="10" y="20">Times of an honest neighbour: line p1 to p99, dot p50</text>']
    for power in range(int(LEAST), int(MOST) + 1):
        x = place(10.0 ** power)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{TOP - 8}" y2="{height - 12}" '
                     'stroke="#ddd"/>'
                     f'<text x="{x:.0f}" y="{TOP - 10}" text-anchor="middle">'
                     f'{10.0 ** power:g} ms</text>')
    for index, (attack, name, times) in enumerate(lines):
        y = TOP + ROW * index + 8
        low, middle, high = (place(times[min(len(times) - 1, int(len(times) * part))])
                             for part in (0.01, 0.5, 0.99))
        parts.append(f'<text x="10" y="{y + 4}">{escape(attack)}: {escape(name)}</text>'
                     f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="#369" '
                     'stroke-width="3"/>'
                     f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="#c30"/>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n</svg>\n")
