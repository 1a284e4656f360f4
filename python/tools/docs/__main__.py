"""Writes everything in the documents that is made from the code, or says what is out of date.

python -m tools.docs            write it
python -m tools.docs --check    write nothing; fail if something is out of date
"""

from __future__ import annotations

import sys

from tools.docs.generate import main

sys.exit(main(sys.argv[1:]))
