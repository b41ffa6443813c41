"""Puts tests/ on the path, so that tests share the plain references in tests/support."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
