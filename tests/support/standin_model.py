"""A stand-in for the model behind OpenEvolve: a server on loopback that answers with fixed programs, in turn.

``python -m support.standin_model`` prints its port. The programs are schedulers for gpu-sharing.
"""

from __future__ import annotations

import http.server
import itertools
import json

HEAD = "def scheduler(instance, *, seed):\n"
PROGRAMS = {
    "better": "    import schedgap\n    return schedgap.solve(instance, 'sjf-bsbf+', seed=seed).solution\n",
    "infeasible": (
        "    first = [instance.servers[0].id, 0]\n"
        "    return {'start': {job.id: job.arrival for job in instance.jobs},\n"
        "            'gpus': {job.id: [first] * job.gpus for job in instance.jobs},\n"
        "            'accumulation': {job.id: 1 for job in instance.jobs}}\n"
    ),
    "endless": "    while True:\n        pass\n",
    "crashing": "    import os\n    os._exit(1)\n",
    "cheating": (
        "    from schedgap.benchmarks.library.collection import entries\n"
        "    return next(e.known.solution for e in entries('gpu-sharing') if e.instance == instance)\n"
    ),
    "patching": (
        "    import schedgap.benchmarks.evaluation.frozen as judge\n"
        "    judge.Attempt.part = 1.0\n"
        "    return {'combined_score': 1.0}\n"
    ),
}
_TURN = itertools.count()


class Handler(http.server.BaseHTTPRequestHandler):
    """Chat completions, as far as OpenEvolve asks for them."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        name = list(PROGRAMS)[next(_TURN) % len(PROGRAMS)]
        text = f"```python\n# EVOLVE-BLOCK-START\n# {name}\n{HEAD}{PROGRAMS[name]}# EVOLVE-BLOCK-END\n```"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        used = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {
            "id": "0",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": used,
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
