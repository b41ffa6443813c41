"""The fourth tutorial is a pytest file: its cells run as one, and no warning reaches whoever runs them.

The site's build runs all of it; here the problem that takes half of the time is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "own-tests.ipynb"


def test_the_cells_run_as_a_test_file_without_a_warning(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert "In[1:-1]" in code[-1]  # the last cell runs the others, as this does
    file = tmp_path / "test_models.py"
    file.write_text("\n\n\n".join(code[:-1]), encoding="utf-8")
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "-k", "not ddl-cluster"]
    command = [sys.executable, "-m", "pytest", *options, file.name]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    assert "37 passed, 6 deselected" in run.stdout and "warning" not in run.stdout
