"""OpenEvolve against a stand-in for the model: an endpoint on this machine that returns fixed programs in turn.

``python openevolve_client.py FOLDER`` in an environment that has openevolve and schedgap writes the evaluator, runs the
search there and prints what the search's own database holds: by program its figures, the best first. ``FOLDER OUTCOME``
compares that with a file, and ends with status 1 where they differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROBLEM = "comm-contention"
HEAD = '"""{name}"""\n\n\ndef scheduler(instance, *, seed):\n'
BODIES = {
    "better": """import schedgap
results = [schedgap.solve(instance, method, seed=seed) for method in ("adadual-k", "srsf-1", "srsf-2", "srsf-3")]
return min(results, key=lambda result: result.objective).solution""",
    "slow": "import time\nwhile time.process_time() < 30:\n    pass\nreturn {'start': {}}",
    "infeasible": "return {'start': {task.id: -1.0 for task in instance.tasks}}",
    "reads": "from importlib import import_module\nreturn import_module('schedgap.tools.library.collection')",
    "forges": """import json, os, stat, struct
text = json.dumps({"token": "", "solution": {"start": {task.id: 0.0 for task in instance.tasks}}}).encode()
for number in range(3, 64):
    try:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            os.write(number, struct.pack(">Q", len(text)) + text)
    except OSError:
        continue""",
    "patches": """from schedgap.catalogue import registry
from schedgap.formulations.common.check import CheckReport
registry.find_problem("comm-contention").check = lambda *_: CheckReport((), 0)
return {"start": {task.id: -1.0 for task in instance.tasks}, "objective": 0, "combined_score": 1.0}""",
    "solves": "import schedgap\nreturn schedgap.solve(instance, seed=seed).solution",
    "crashes": "import os\nos._exit(1)",
    "endless": "while True:\n    pass",
}
"""Programs, by what they do; `remembers` comes before them."""


def programs() -> dict[str, str]:
    """By name; the first knows the stored answers by heart, which anybody can read in the library."""
    from schedgap.catalogue.registry import find_problem
    from schedgap.tools.evaluation.frozen import stored

    known = {}
    for entry in stored(find_problem(PROBLEM)):
        tasks = entry.data["tasks"]
        known[f"{len(tasks)} {sum(t['size'] for t in tasks):.9g} {sum(t['release'] for t in tasks):.9g}"] = (
            entry.known.solution
        )
    key = 'f"{len(tasks)} {sum(t.size for t in tasks):.9g} {sum(t.release for t in tasks):.9g}"'
    heart = f"tasks = instance.tasks\nreturn KNOWN.get({key}) or {{'start': {{t.id: t.release for t in tasks}}}}"
    bodies = {"remembers": heart, **BODIES}
    texts = {
        name: HEAD.format(name=name) + "".join(f"    {line}\n" for line in body.split("\n"))
        for name, body in bodies.items()
    }
    texts["remembers"] += f"\n\nKNOWN = {json.dumps(known)}\n"
    return texts


class Endpoint(ThreadingHTTPServer):
    """Answers each request for a completion with the next program."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Completion)
        self.left = list(programs().values())


class Completion(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        program = self.server.left.pop(0) if self.server.left else "pass"
        message = {"role": "assistant", "content": f"```python\n{program}```"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "0", "object": "chat.completion", "created": 0, "model": "fixed", "choices": [choice]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def searched(folder: Path) -> list[dict[str, Any]]:
    """Run the search; each program of its database with its figures, as it ranks them."""
    import schedgap

    schedgap.new_package("evaluator", "openevolve", folder, problem=PROBLEM)
    with Endpoint() as endpoint:
        threading.Thread(target=endpoint.serve_forever, daemon=True).start()
        count = len(endpoint.left)
        config = folder / "config.yaml"
        own = f"""max_code_length: 1000000
diff_based_evolution: false
random_seed: 1
checkpoint_interval: {count}
"""
        text = config.read_text().replace("max_iterations: 50", f"max_iterations: {count}")
        text = text.replace("http://127.0.0.1:8000/v1", f"http://127.0.0.1:{endpoint.server_address[1]}/v1")
        config.write_text(own + text + "  parallel_evaluations: 1\n")
        run = [sys.executable, "-m", "openevolve.cli", "initial_program.py", "evaluator.py", "--config", config.name]
        subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=1500)
        endpoint.shutdown()
    rows = []
    (last,) = (folder / "openevolve_output" / "checkpoints").iterdir()
    for path in (last / "programs").glob("*.json"):
        found = json.loads(path.read_text())
        name = found["code"].split('"""')[1]
        texts = json.loads(found["artifacts_json"] or "{}")
        failure = json.loads(texts["failure"])["kind"] if "failure" in texts else None
        rows.append({"program": name if name in programs() else "initial", **found["metrics"], "failure": failure})
    best = (folder / "openevolve_output" / "best" / "best_program.py").read_text().split('"""')[1]
    return sorted(rows, key=lambda row: (row["program"] != best, -row["combined_score"], row["program"]))


if __name__ == "__main__":
    rows = searched(Path(sys.argv[1]))
    print("[\n" + ",\n".join(f" {json.dumps(row)}" for row in rows) + "\n]")
    sys.exit(len(sys.argv) > 2 and rows != json.loads(Path(sys.argv[2]).read_text()))
