"""`python -m logdevice.node` is `logdeviced`."""

import sys

from logdevice.node.main import main

if __name__ == "__main__":
    sys.exit(main())
