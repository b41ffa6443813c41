"""Folders for programs that write schedulers: an evaluator of candidates, a task and a program to begin with."""

from __future__ import annotations

import json
from pathlib import Path

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_folder, write_text
from schedgap.tools.evaluation.frozen import stored

_EVALUATOR = '''"""The score of a candidate for PROBLEM, by schedgap's judge of candidates: `evaluate(path)`.

The candidate runs in a process of its own, which is closed off before it is loaded. Instances and what is known of
them are schedgap's own and closed to it; nothing of them lies in this folder. The score is for the search: README.md.
"""

import json

from schedgap import InputError
from schedgap.tools.evaluation.frozen import judge_of


def judged(path, most=None):
    """A candidate's figures, and text that helps the next try."""
    try:
        result = judge_of("PROBLEM").judge(f"{path}:scheduler", most=most).to_dict()
    except InputError as error:
        return {"combined_score": 0.0, "feasible": 0.0, "too_good": 0.0}, {"failure": str(error)}
    shares = {name: result[name] / result["instances"] for name in ("feasible", "too_good")}
    texts = {name: json.dumps(part) for name, part in result["artifacts"].items()}
    return {"combined_score": result["development_score"], **shares}, texts


'''


_FORMS = {
    "plain": '''def evaluate(path):
    """The figures and the texts as one dict; `combined_score` is between 0 and 1."""
    figures, texts = judged(path)
    return {**figures, "artifacts": texts}
''',
    "openevolve": '''def evaluate(path, most=None):
    """All instances, or so many of the smallest."""
    from openevolve.evaluation_result import EvaluationResult

    figures, texts = judged(path, most)
    return EvaluationResult(metrics=figures, artifacts=texts)


def evaluate_stage1(path):
    """The three smallest; what schedules one of them is tried on all."""
    return evaluate(path, 3)


evaluate_stage2 = evaluate
''',
}


_PROGRAM = '''"""A scheduler for PROBLEM: change what stands between the marks."""


# EVOLVE-BLOCK-START
def scheduler(instance, *, seed):
    """It begins as the first shipped heuristic that finds something. All randomness must come from `seed`."""
    import schedgap

    for method in "METHODS".split():
        if found := schedgap.solve(instance, method, seed=seed).solution:
            return found
    return None


# EVOLVE-BLOCK-END
'''


_CONFIG = """max_iterations: 50
llm: # your model's address, key and name come here; many servers on your own machine take any key
  api_base: http://127.0.0.1:8000/v1
  api_key: none
  models: [{name: YOUR-MODEL, weight: 1.0}]
prompt:
  system_message: |
TASK
evaluator:
  cascade_evaluation: true
  cascade_thresholds: [0.01]
  timeout: 300
"""


_README = """# A machine writes a scheduler for PROBLEM

| file | what |
|---|---|
| `evaluator.py` | `evaluate(path)`: the score of a candidate on stored instances, CLIENT's form |
| `initial_program.py` | what the search begins with |
| `task.md` | what a candidate has to do, for the prompt |

RUN

The score is for the search only: its instances are always the same, and their optima are
public. Believe this instead, on families that are drawn when the card is made, of which nothing is stored anywhere:

    schedgap evaluate best_program.py:scheduler --problem PROBLEM --held-out --out card

`feasible` is the share of instances with a solution.
`too_good` is the share on which it breaks a rule and looks better than the best possible: a bug or a cheat.
"""


_RUNS = {
    "plain": "Call `evaluate(path)` of `evaluator.py` for each candidate, all in one process.",
    "openevolve": "    pip install openevolve\n    openevolve-run initial_program.py evaluator.py -c config.yaml\n",
}


def fresh(home: Path) -> Path:
    """A folder that ``new`` may make.

    Raises InputError: it is there already, or nothing can be written there.
    """
    if home.exists():
        raise InputError(f"new: {home} is there already")
    check_folder(home)
    return home


def new_evaluator(client: str, problem_id: str | None, folder: Path | None = None) -> list[Path]:
    """Write the folder of an evaluator of candidates.

    Parameters
    ----------
    client : openevolve or plain
    problem_id : whose schedulers are written
    folder : the new folder; evaluator-PROBLEM in the working directory where not given

    Returns
    -------
    The files.

    Raises InputError: no such client or problem, no problem, or a folder that is there already.
    """
    if client not in _FORMS:
        raise InputError(f"new evaluator: must be {' or '.join(sorted(_FORMS))}, got {client!r}")
    if problem_id is None:
        raise InputError("new evaluator: --problem says whose schedulers are written")
    problem = find_problem(problem_id, "--problem")
    stored(problem)
    home = fresh(folder or Path(f"evaluator-{problem.id}"))
    task = _task(problem)
    texts = {
        "evaluator.py": _EVALUATOR + _FORMS[client],
        "initial_program.py": _PROGRAM,
        "task.md": task,
        "README.md": _README.replace("RUN", _RUNS[client]).replace("CLIENT", client),
    }
    if client == "openevolve":
        texts["config.yaml"] = _CONFIG.replace("TASK", "\n".join(f"    {line}".rstrip() for line in task.splitlines()))
    home.mkdir(parents=True, exist_ok=True)
    # one that is kept as its paper prints it may break rules; a repaired one finds something more often, so it is first
    kept = [one.id for one in problem.heuristics() if not (one.outside_model or one.id.endswith("-printed"))]
    methods = " ".join(sorted(kept, key=lambda name: not name.endswith("+")))
    return [
        write_text(home / name, text.replace("PROBLEM", problem.id).replace("METHODS", methods))
        for name, text in texts.items()
    ]


def _task(problem: Problem) -> str:
    """What a candidate is given, has to return and is measured by."""
    aim = "least" if problem.sense > 0 else "largest"
    names = ", ".join(method.id for method in problem.heuristics() if not method.outside_model)
    forms = [problem.instance_class, problem.solution_class]
    given, wanted = (json.dumps(form.model_json_schema() if form else {}, separators=(",", ":")) for form in forms)
    return f"""Write `scheduler(instance, *, seed) -> solution` in Python: {problem.title}.

- It returns a dict, the solution, or None. The {aim} {problem.objective_name} ({problem.unit}) is wanted.
- An independent checker judges it: a solution that breaks one constraint counts 0.
- The score is the mean of 1/ratio to the optimum over all instances: 1 is optimal everywhere.
- It has 2 seconds an instance, no network, no other process, and sees no file but Python's, its libraries' and its own.
- It may call `schedgap.solve(instance, method, seed=seed)` for these heuristics: {names}. Not for exact methods.
- `instance` has the fields of this JSON Schema as attributes: {given}
- The solution has this one: {wanted}
"""
