"""Whether the kernel has what keeps a judged scheduler in."""

import subprocess
import sys

NO = 9


def kernel_helps(*calls: str) -> bool:
    """Whether all these calls of ``landlock`` and ``seccomp`` succeed, in a process that they restrict for good.

    What cannot be asked is no "no": tests would be skipped for it.
    """
    rooms = "from schedgap.tools.evaluation import landlock, seccomp; restrict = landlock.restrict"
    asked = f"{rooms}; refuse_calls = seccomp.refuse_calls; sys.exit({NO} * (not ({' and '.join(calls)})))"
    status = subprocess.run([sys.executable, "-c", f"import sys; {asked}"]).returncode
    assert status in (0, NO), f"{asked}: status {status}"
    return status == 0
