"""What the picture of the architecture promises: it is current, agrees with the layers, and is readable."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from architecture import LAYERS, Layer
from tools.docs import architecture_picture as drawn
from tools.docs.architecture_picture import GROUND, IMPORTS, NOUNS, PACKAGES, PROCESSES, Box, Words

PYTHON = Path(__file__).resolve().parents[3]
IMPORTS_EVERYTHING = {"bench", "tools"}
# Of the size of the font, in DejaVu Sans, the widest of the usual ones; all other characters are narrower.
WIDTHS = {
    "m": 0.98,
    "w": 0.82,
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.8),
    **dict.fromkeys(" .,:;ijlt", 0.4),
}
USUAL, BOLD = 0.62, 1.13
Extent = tuple[float, float, float, float]  # left, top, right, bottom


def package_of(path: str) -> str:
    """The box for a path such as `logdevice/node/disk.py`, or for a module such as `logdevice.node.disk`."""
    parts = re.split(r"[./]", path.removeprefix("logdevice/").removeprefix("logdevice."))
    return "nouns" if parts[0] in NOUNS else parts[0]


def paths_of(layer: Layer) -> tuple[str, ...]:
    return (layer.path,) if isinstance(layer.path, str) else layer.path


def allowed() -> set[tuple[str, str]]:
    """Importer and imported, of different packages; `logdevice` is where a layer may import all of it."""
    pairs = {
        (package_of(path), package_of(ours))
        for layer in LAYERS
        for path in paths_of(layer)
        for ours in layer.ours
        if path != "logdevice/__init__.py"  # the public names, which belong to no package
    }
    return {(importer, imported) for importer, imported in pairs if importer != imported}


def reached(package: str) -> set[str]:
    """What a package may import as the picture has it: along arrows, and the ground that it stands on."""
    direct = {arrow.end for arrow in IMPORTS if arrow.start == package}
    ground = () if package in GROUND else GROUND
    return direct.union(ground, *(reached(each) for each in direct))


def width(words: Words) -> float:
    size = {"heading": drawn.HEADING_SIZE, "title": drawn.TITLE_SIZE}.get(words.look, drawn.TEXT_SIZE)
    is_bold = words.look in ("heading", "title")
    return sum(WIDTHS.get(each, USUAL) for each in words.text) * size * (BOLD if is_bold else 1)


def extent(words: Words) -> Extent:
    badge = 16 + drawn.BADGE if words.step else 0
    return words.x - badge, words.y - 12, words.x + width(words), words.y + 4


def meet(one: Extent, other: Extent) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def is_inside(inner: Extent, box: Box) -> bool:
    return (
        box.x + 4 <= inner[0]
        and box.y + 4 <= inner[1]
        and inner[2] <= box.right - 4
        and inner[3] <= box.bottom - 4
    )


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_package_is_drawn_and_nothing_else() -> None:
    found = {path.parent.name for path in (PYTHON / "logdevice").glob("*/__init__.py")}
    found |= {path.stem for path in (PYTHON / "logdevice").glob("*.py")} - {"__init__"}
    found |= {path.name for path in PYTHON.iterdir() if path.is_dir() and any(path.rglob("*.py"))} - {
        "logdevice"
    }
    assert {package_of(name) for name in found} == set(PACKAGES)
    assert found >= set(NOUNS)


def test_every_arrow_between_packages_is_allowed_by_the_layers() -> None:
    pairs = allowed()
    forbidden = [
        f"{arrow.start} may not import {arrow.end}"
        for arrow in IMPORTS
        if (arrow.start, arrow.end) not in pairs and (arrow.start, "logdevice") not in pairs
    ]
    assert not forbidden, "\n".join(forbidden)


def test_all_that_the_layers_allow_is_in_the_picture() -> None:
    missing = [
        f"{importer} may import {imported}, and no arrow says so"
        for importer, imported in sorted(allowed())
        if not (imported == "logdevice" or importer in IMPORTS_EVERYTHING or imported in reached(importer))
    ]
    assert not missing, "\n".join(missing)


def test_a_package_that_may_import_everything_says_so() -> None:
    whole = {importer for importer, imported in allowed() if imported == "logdevice"}
    assert whole >= IMPORTS_EVERYTHING
    assert {name for name in PACKAGES if "everything" in PACKAGES[name].text} == IMPORTS_EVERYTHING


def test_words_do_not_meet_other_words() -> None:
    written = [words for words in drawn.all_words() if words.text]
    assert not [
        (one.text, other.text) for one, other in combinations(written, 2) if meet(extent(one), extent(other))
    ]


def test_no_arrow_runs_through_words() -> None:
    lines = [
        (min(x, x_end) - 2, min(y, y_end) - 2, max(x, x_end) + 2, max(y, y_end) + 2)
        for _, points in drawn.all_arrows()
        for (x, y), (x_end, y_end) in pairwise(points)
    ]
    assert not [words.text for words in drawn.all_words() for line in lines if meet(extent(words), line)]


def test_words_are_on_the_page_and_whole_inside_or_outside_of_each_box() -> None:
    page = Box(0, 0, drawn.WIDTH, drawn.HEIGHT, "")
    assert [words.text for words in drawn.all_words() if not is_inside(extent(words), page)] == []
    assert [
        words.text
        for words in drawn.all_words()
        for box in (*PROCESSES.values(), *PACKAGES.values())
        if words.text
        and meet(extent(words), (box.x, box.y, box.right, box.bottom))
        and not is_inside(extent(words), box)
    ] == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_and_lines_stand_out_from_what_is_behind_them(scheme: int) -> None:
    colours = {name: both[scheme] for name, both in drawn.COLOURS.items()}
    for ground in ("page", "panel", "box", "part", "kept"):
        assert contrast(colours["ink"], colours[ground]) >= 7
    for ground in ("page", "panel"):
        assert contrast(colours["faint"], colours[ground]) >= 4.5
        assert contrast(colours["record"], colours[ground]) >= 4.5
        assert contrast(colours["edge"], colours[ground]) >= 3
    assert contrast(colours["on-record"], colours["record"]) >= 4.5


def test_the_file_stands_alone_and_says_in_words_what_it_shows() -> None:
    text = drawn.picture()
    root = ET.fromstring(text)
    named = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert named["title"] == drawn.TITLE
    assert named["desc"] == drawn.DESCRIPTION
    assert "@media (prefers-color-scheme: dark)" in text
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) == set(drawn.COLOURS)
    assert min(int(size) for size in re.findall(r"font-size: (\d+)px", text)) >= 13
    assert not re.findall(r"href|@import|url\((?!#)", text)
