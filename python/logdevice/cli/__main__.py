"""`python -m logdevice.cli`, for where the `logdevice` command is not on the path."""

import sys

from logdevice.cli.main import main

sys.exit(main())
