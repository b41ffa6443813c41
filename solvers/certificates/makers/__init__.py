"""Who makes the certificates of a problem, one module each, which ``make.maker_of`` finds by the problem's id.

``leaves(instance, given)`` yields what may prove a bound at once, each a ``make.Leaf``.
``way(instance, given, value)``, which is optional, says how a tree is made: form, options and
``make.Grow``. `given` is the instance as the checker reads it. Problems of other
packages have rules alone, with ``bounds`` among them.

A maker may stop at any round, size or time. What it hands over is evaluated by the rules, exactly, and claimed is what
comes of that: a bound is never valid because its maker converged.
"""
