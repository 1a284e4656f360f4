"""Draws docs/images/architecture.svg: the processes, the way of one record through them, the packages.

To change the picture, change the tables below; all numbers are pixels. A test compares the packages with
architecture.py, and finds words that leave their box, meet other words or lie on an arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

FILE: Final = "docs/images/architecture.svg"
WIDTH, HEIGHT = 1200, 1420
TEXT_SIZE, TITLE_SIZE, HEADING_SIZE, LINE, PAD, BADGE = 13, 14, 20, 18, 12, 10
TITLE: Final = "The architecture of LogDevice for Spark"
DESCRIPTION: Final = (
    "Above: a record goes from a client to the sequencer of its log, to three storage nodes, to a reader in "
    "a Spark executor and into a Delta table, in eight steps. Below: the packages and their imports."
)
# Each colour in light and in dark.
COLOURS: Final = {
    "page": ("#ffffff", "#0d1117"),
    "panel": ("#f4f6f9", "#161b22"),
    "box": ("#ffffff", "#212830"),
    "part": ("#e4eefb", "#1b3350"),
    "kept": ("#e3f3e6", "#17351f"),
    "edge": ("#818b98", "#768390"),
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#57606a", "#a9b2bc"),
    "record": ("#0a58b8", "#79b8ff"),
    "on-record": ("#ffffff", "#0d1117"),
}
STYLE: Final = f"""\
text {{ font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }}
text {{ font-size: {TEXT_SIZE}px; fill: var(--ink) }} .faint {{ fill: var(--faint) }}
.heading {{ font-size: {HEADING_SIZE}px }} .title {{ font-size: {TITLE_SIZE}px }}
.heading, .title, .number {{ font-weight: 600 }} .number {{ fill: var(--on-record); text-anchor: middle }}
rect {{ fill: var(--box); stroke: var(--edge) }} .page, .panel, .part {{ stroke: none }}
.page {{ fill: var(--page) }} .panel {{ fill: var(--panel) }} .part {{ fill: var(--part) }}
.kept {{ fill: var(--kept) }} .idle {{ fill: none; stroke-dasharray: 3 3 }}
path {{ fill: none; stroke: var(--edge); stroke-width: 1.5 }}
.record, .silent {{ stroke: var(--record) }} .record {{ stroke-width: 2 }} .silent {{ stroke-dasharray: 2 4 }}
circle {{ fill: var(--record) }}
.grey-tip {{ stroke: none; fill: var(--edge) }} .record-tip {{ stroke: none; fill: var(--record) }}
"""


@dataclass(frozen=True, slots=True)
class Box:
    """`look`: panel, box (process or package), part (of a process), idle (not needed), kept (on disk)."""

    x: int
    y: int
    width: int
    height: int
    title: str
    text: str = ""
    look: str = "box"
    step: int = 0  # its number, at the upper right corner

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class Arrow:
    """Straight where the boxes face each other, or by way of a vertical line at `through`."""

    start: str
    end: str
    look: str = "record"  # or grey (metadata, plans, imports), or silent (a node that could send)
    leave: int | None = None  # where on the side of the start; else in the middle
    arrive: int | None = None
    through: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    x: int
    y: int  # of the line they stand on
    text: str
    look: str = "plain"  # or faint, title, heading
    step: int = 0  # its number, before them


Boxes = Mapping[str, Box]
Points = tuple[tuple[int, int], ...]

NODES: Final = {"N2": 240, "N3": 386, "N4": 532}
PROCESSES: Final[Boxes] = {
    "application": Box(24, 72, 156, 448, "Application", look="panel"),
    "cluster": Box(312, 72, 488, 608, "LogDevice cluster", look="panel"),
    "spark": Box(912, 72, 264, 524, "Spark", look="panel"),
    "program": Box(36, 108, 132, 400, "Your code", "makes entries:\nkey, payload,\nattributes"),
    "client": Box(
        *(48, 276, 108, 220, "client"),
        *("\n\njoins entries\ninto a batch,\none record\n\nis told\nthe LSN", "part"),
    ),
    "epoch store": Box(
        *(328, 108, 460, 54, "Epoch store: SQLite or ZooKeeper"),
        *("epochs, nodes, log directory, by compare-and-set", "kept"),
    ),
    "N1": Box(328, 240, 168, 424, "N1: logdeviced"),
    "sequencer": Box(
        *(340, 276, 144, 280, "sequencer"),
        "of this log\n\ngives the LSN,\nchooses the\ncopyset: here\nN2, N3, N4\n\n"
        "acknowledges\nwhen R copies\nare stored\n\nreleases in\nLSN order",
        *("part", 2),
    ),
    "storage of N1": Box(340, 572, 144, 80, "storage", "not in this\ncopyset", "idle"),
    **{node: Box(628, y, 160, 132, f"{node}: logdeviced") for node, y in NODES.items()},
    **{f"other {node}": Box(640, y + 32, 136, 28, "", "sequencer", "idle") for node, y in NODES.items()},
    **{
        f"storage of {node}": Box(640, y + 68, 136, 52, "storage", "segment, index", "kept", 3)
        for node, y in NODES.items()
    },
    "driver": Box(
        *(928, 108, 232, 92, "Driver"), "planner: where logs end,\nwhat a batch takes,\nwhat each task reads"
    ),
    "executors": Box(928, 240, 196, 346, "Executors"),
    "sink": Box(940, 276, 172, 72, "sink", "appends rows to logs,\neach once, like step 1", "idle"),
    "reader": Box(940, 444, 172, 72, "reader", "a client: puts records\nin LSN order", "part"),
    "rows": Box(940, 540, 172, 36, "Arrow batch", "", "part", 7),
    "delta": Box(928, 612, 124, 68, "Delta table", "a row for\neach entry", "kept", 8),
    "checkpoint": Box(1064, 612, 112, 68, "Checkpoint", "LSN offsets\nof each log", "kept"),
    "key of part": Box(24, 594, 28, 18, "", look="part"),
    "key of kept": Box(24, 626, 28, 18, "", look="kept"),
    "key of idle": Box(24, 658, 28, 18, "", look="idle"),
}
MESSAGES: Final = (
    Arrow("client", "sequencer", leave=360),
    Arrow("sequencer", "client", leave=448),
    *(Arrow("sequencer", f"storage of {node}", leave=360, through=608) for node in NODES),
    *(Arrow(f"storage of {node}", "sequencer", arrive=448, through=608) for node in NODES),
    *(Arrow("sequencer", f"storage of {node}", leave=520, through=608) for node in NODES),
    Arrow("storage of N2", "reader", "silent", through=904),
    Arrow("storage of N4", "reader", "silent", through=904),
    Arrow("storage of N3", "reader"),
    Arrow("reader", "rows"),
    Arrow("rows", "delta"),
    Arrow("N1", "epoch store", "grey", leave=360),
    Arrow("driver", "N1", "grey", leave=184, arrive=258, through=608),
    Arrow("driver", "executors", "grey"),
    Arrow("driver", "checkpoint", "grey", leave=1142),
)
LABELS: Final = (
    Words(24, 44, "One record, from an application into a Delta table", "heading"),
    Words(212, 348, "APPEND", step=1),
    Words(212, 436, "acknowledged", step=4),
    Words(524, 348, "STORE", step=2),
    Words(524, 436, "STORED", step=3),
    Words(524, 508, "RELEASE", step=5),
    Words(828, 468, "RECORDS", step=6),
    Words(372, 206, "takes an epoch", "faint"),
    Words(628, 206, "asks for the tail", "faint"),
    Words(812, 308, "has a copy,", "faint"),
    Words(812, 325, "is silent", "faint"),
    Words(1038, 225, "tasks", "faint"),
    Words(62, 608, "works on this record", "faint"),
    Words(62, 640, "kept on disk", "faint"),
    Words(62, 672, "not needed by this record", "faint"),
    Words(
        24, 914, "Before it reads a batch, Spark notes in the checkpoint where the batch ends in each log."
    ),
    Words(24, 976, "The packages, and which may import which", "heading"),
    Words(580, 976, "Arrow: may import some modules; python/architecture.py says which.", "faint"),
    Words(24, 1254, "Every package above may also import from these:", "faint"),
)
STEPS: Final = (
    "The client encodes entries as one batch and sends it as\nAPPEND to the node that sequences the log.",
    "The sequencer gives the record its LSN, chooses a copyset\nof R nodes (here 3) and sends them STORE.",
    "Each node syncs the record to a segment file, puts it into\nits index, and only then answers STORED.",
    "With R copies stored, the sequencer acknowledges: the\napplication gets the LSN.",
    "RELEASE tells all storage nodes how far the log may be\nread, in LSN order. No node sends more.",
    "The reader sends START to all nodes of the nodeset. One\nholder sends the record, the others do not.",
    "The reader joins records into Arrow batches, in LSN order.\nMissing LSNs come as a gap that says why.",
    "Executors write files. One commit, with the number of\nthe batch, adds their rows: a batch counts once.",
)
NOUNS: Final = ("types", "errors", "settings", "log_attributes", "cuts")
# By the names of the packages.
PACKAGES: Final[Boxes] = {
    "bench": Box(24, 1000, 128, 68, "bench", "may import\neverything"),
    "tools": Box(24, 1096, 128, 132, "tools", "mutants,\ndocuments;\nmay import\neverything"),
    "cli": Box(180, 1000, 140, 68, "cli", "the logdevice\ncommand"),
    "pyspark_logdevice": Box(348, 1000, 184, 68, "pyspark_logdevice", "source, sink, ETL:\nwhat Spark sees"),
    "compaction": Box(560, 1000, 140, 68, "compaction", "of keyed logs,\nas a client"),
    "node": Box(
        *(728, 1000, 264, 148, "node"),
        "logdeviced: sockets, disks and\nclocks around the machines;\nassembly.py puts them together",
    ),
    "simulation": Box(
        *(1020, 1000, 156, 148, "simulation"),
        "seeded worlds that\nrun the machines,\nwithout a clock,\nsocket or thread",
    ),
    "client": Box(
        180, 1096, 520, 52, "client", "append, read, ask, administer; reaches nodes by connections only"
    ),
    "runtime": Box(180, 1176, 160, 52, "runtime", "runs a machine"),
    "wire": Box(368, 1176, 404, 52, "wire", "messages as bytes, gRPC, data connections"),
    "metadata": Box(800, 1176, 128, 52, "metadata", "epoch store"),
    "storage": Box(956, 1176, 220, 52, "storage", "segment files and an index"),
    "protocol": Box(
        *(24, 1268, 1152, 52, "protocol"),
        "every decision: state machines, from events to effects, that reach no socket, disk, clock or thread",
    ),
    "records": Box(24, 1344, 360, 52, "records", "a record as bytes, entries as Arrow batches"),
    "nouns": Box(
        412, 1344, 764, 52, ", ".join(NOUNS), "the nouns, the error tree, every setting and attribute"
    ),
}
GROUND: Final = ("protocol", "records", "nouns")  # the others may import from these, without an arrow
IMPORTS: Final = tuple(
    Arrow(importer, imported, "grey")
    for importer, *all_imported in (
        ("cli", "bench", "pyspark_logdevice", "client"),
        ("pyspark_logdevice", "client"),
        ("compaction", "client"),
        ("node", "compaction", "wire", "metadata", "storage"),
        ("simulation", "storage"),
        ("client", "runtime", "wire"),
        ("wire", "runtime"),
        ("protocol", "records", "nouns"),
        ("records", "nouns"),
    )
    for imported in all_imported
)


def pages(root: Path) -> dict[str, str]:
    return {FILE: picture()}


def picture() -> str:
    light, dark = ("".join(f"--{name}:{both[i]};" for name, both in COLOURS.items()) for i in range(2))
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{TITLE}</title>',
        f'<desc id="desc">{DESCRIPTION}</desc>',
        f"<style>\nsvg {{ {light} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}",
        f"{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        *(drawn_box(box) for boxes in (PROCESSES, PACKAGES) for box in boxes.values()),
        *(drawn_lines(look) for look in ("grey", "silent", "record")),
        *(drawn_tip(look, *points[-2:]) for look, points in all_arrows() if look != "silent"),
        *(drawn_words(words) for words in all_words()),
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def all_arrows() -> Iterator[tuple[str, Points]]:
    for arrows, boxes in ((MESSAGES, PROCESSES), (IMPORTS, PACKAGES)):
        yield from ((arrow.look, route(arrow, boxes)) for arrow in arrows)


def all_words() -> Iterator[Words]:
    for boxes in (PROCESSES, PACKAGES):
        yield from (words for box in boxes.values() for words in words_of(box))
    yield from LABELS
    for index, step in enumerate(STEPS):
        x, y = 50 + 588 * (index // 4), 726 + 46 * (index % 4)
        for number, line in enumerate(step.split("\n")):
            yield Words(x, y + LINE * number, line, step=0 if number else index + 1)


def words_of(box: Box) -> Iterator[Words]:
    y = box.y + 22
    if box.title:
        yield Words(box.x + PAD, y, box.title, "title")
    for number, line in enumerate(box.text.split("\n"), start=1 if box.title else 0):
        if line:
            yield Words(box.x + PAD, y + LINE * number - (0 if box.title else 3), line)
    if box.step:
        yield Words(box.right + PAD, box.y + 6, "", step=box.step)


def route(arrow: Arrow, boxes: Boxes) -> Points:
    """The corners of an arrow, from the side of one box to the side of another."""
    start, end = boxes[arrow.start], boxes[arrow.end]
    if (x := arrow.through) is not None:
        leave = arrow.leave or (start.y + start.bottom) // 2
        arrive = arrow.arrive or (end.y + end.bottom) // 2
        out = start.right if start.right < x else start.x
        into = end.right if end.right < x else end.x
        return (out, leave), (x, leave), (x, arrive), (into, arrive)
    top, bottom = max(start.y, end.y), min(start.bottom, end.bottom)
    if top < bottom:  # side by side
        y = arrow.leave or (top + bottom) // 2
        return ((start.right, y), (end.x, y)) if start.right < end.x else ((start.x, y), (end.right, y))
    x = arrow.leave or (max(start.x, end.x) + min(start.right, end.right)) // 2
    return ((x, start.bottom), (x, end.y)) if start.bottom < end.y else ((x, start.y), (x, end.bottom))


def drawn_box(box: Box) -> str:
    return (
        f'<rect class="{box.look}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>'
    )


def drawn_lines(look: str) -> str:
    """In one path: lines that share a stretch would be darker there."""
    routes = [points for each, points in all_arrows() if each == look]
    path = "".join("M" + "L".join(f"{x} {y}" for x, y in points) for points in routes)
    return f'<path class="{look}" d="{path}"/>'


def drawn_tip(look: str, before: tuple[int, int], at: tuple[int, int]) -> str:
    """The head of an arrow, which runs along or down the page."""
    (x, y), turn = at, 90 * ((at[1] > before[1]) + 2 * (at[0] < before[0]) + 3 * (at[1] < before[1]))
    return f'<path class="{look}-tip" transform="translate({x} {y}) rotate({turn})" d="M0 0L-9 -4V4z"/>'


def drawn_words(words: Words) -> str:
    drawn = f'<text class="{words.look}" x="{words.x}" y="{words.y}">{escape(words.text)}</text>'
    if not words.step:
        return drawn
    x = words.x - 16
    number = f'<text class="number" x="{x}" y="{words.y}">{words.step}</text>'
    return f'<circle cx="{x}" cy="{words.y - 4.5}" r="{BADGE}"/>{number}' + (drawn if words.text else "")
