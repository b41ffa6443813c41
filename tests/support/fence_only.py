"""The process of a judged scheduler where the kernel does not help: as on macOS, or an old Linux."""

import sys

from schedgap.tools.evaluation import guest

if __name__ == "__main__":
    guest.restrict = lambda *_: False
    guest.refuse_calls = lambda: False
    guest.main(sys.argv[1:])
