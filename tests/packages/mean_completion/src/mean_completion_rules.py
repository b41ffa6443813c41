"""Rows that every schedule satisfies, for the checker of certificates: it believes nothing of the model."""

from fractions import Fraction


def valid(instance):
    """A ValueError for what is no instance."""
    jobs = instance["jobs"]
    numbers = [instance["machines"], *(job["length"] for job in jobs)]
    releases = [job["release"] for job in jobs]
    if not jobs or not all(type(number) is int and number >= 1 for number in numbers):
        raise ValueError("machines and lengths must be whole numbers of at least 1")
    if not all(type(release) is int and release >= 0 for release in releases):
        raise ValueError("releases must be whole numbers of at least 0")


def _last(instance):
    """A slot by which some optimal schedule ends: a later start could move to an idle machine."""
    return max(job["release"] for job in instance["jobs"]) + sum(job["length"] for job in instance["jobs"])


def rows(instance, options, model):
    """The rows, written by hand from the bare JSON: one start each, and at most m jobs in every slot."""
    jobs, last = instance["jobs"], _last(instance)
    running = {slot: [] for slot in range(last)}
    for j, job in enumerate(jobs):
        starts = range(job["release"], last - job["length"] + 1)
        for t in starts:
            one = model.var(f"start[{j},{t}]", cost=Fraction(t + job["length"], len(jobs)))
            for slot in range(t, t + job["length"]):
                running[slot].append((one, 1))
        model.row(f"once[{j}]", [(f"start[{j},{t}]", 1) for t in starts], "=", 1)
    for slot, those in running.items():
        model.row(f"busy[{slot}]", those, "<=", instance["machines"])


def point(instance, solution, options):
    """A schedule as a point of the rows."""
    return {f"start[{j},{t}]": 1 for j, t in enumerate(solution["start"])}


FORMS = {"rows": rows}
