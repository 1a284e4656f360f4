"""`python -m logdevice.cli`, for environments in which the `logdevice` command is not on the path."""

import sys

from logdevice.cli.main import main

sys.exit(main())
