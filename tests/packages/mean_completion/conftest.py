"""The package's sources, for a run of its tests from the root of the repository."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
