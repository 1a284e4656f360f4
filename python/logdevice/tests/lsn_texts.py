"""LSNs as text: the same texts with the same results for every implementation, Python, Java and SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[3] / "connector" / "src" / "test" / "resources" / "lsn_texts.json"
TEXTS: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
