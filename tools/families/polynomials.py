"""Polynomials of n with rational coefficients: fitted exactly to numbers, written and read as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_poly

from schedgap.formulations.common.errors import InputError

_TERM = re.compile(r"([+-]?)(\d+(?:/\d+)?)?(?:(\*)?(n)(?:\^(\d))?)?")


@dataclass(frozen=True)
class Polynomial:
    """``sum coefficients[k] n^k``; the last coefficient is not 0, and 0 has none.

    Examples
    --------
    >>> str(Polynomial.read("n^2 - n")), Polynomial.read("n^2-n")(4)
    ('n^2 - n', Fraction(12, 1))
    """

    coefficients: tuple[Fraction, ...]

    def __call__(self, n: int) -> Fraction:
        """Its value."""
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))

    @property
    def degree(self) -> int:
        """The highest power of n; 0 for 0 too."""
        return max(0, len(self.coefficients) - 1)

    @property
    def complexity(self) -> float:
        """0 for a constant; grows with the degree, and with denominators and sizes of the coefficients."""
        if self.degree == 0:
            return 0.0
        long = sum(len(str(abs(c))) - 1 for c in self.coefficients if c)
        return 2 * self.degree - 1 + 0.25 * (sum(c != 0 for c in self.coefficients) - 1) + long

    def __str__(self) -> str:
        """The text as it is read: highest power first."""
        text = ""
        for k in range(len(self.coefficients) - 1, -1, -1):
            c = self.coefficients[k]
            if c:
                power = "" if k == 0 else "n" if k == 1 else f"n^{k}"
                size = "" if abs(c) == 1 and k else str(abs(c))
                sign = ("-" if c < 0 else "") if not text else " - " if c < 0 else " + "
                text += sign + size + ("*" if "/" in size and power else "") + power
        return text or "0"

    @classmethod
    def read(cls, text: str) -> Polynomial:
        """What :meth:`__str__` wrote.

        Raises InputError: it is no polynomial of n.
        """
        plain, at = re.sub(r"\s", "", text), 0
        found: dict[int, Fraction] = {}
        while at < len(plain):
            term = _TERM.match(plain, at)
            sign, size, _, power, exponent = term.groups() if term else ("", None, None, None, None)
            if term is None or term.end() == at or (size is None and power is None) or (at and not sign):
                raise InputError(f"must be a polynomial of n such as n^2 - n, got {text!r}")
            k = 0 if power is None else int(exponent or 1)
            try:
                found[k] = found.get(k, Fraction(0)) + Fraction(sign + (size or "1"))
            except ZeroDivisionError:
                raise InputError(f"must be a polynomial of n such as n^2 - n, got {text!r}") from None
            at = term.end()
        if not plain:
            raise InputError("must be a polynomial of n such as n^2 - n, got an empty text")
        return _of(_exact(Polynomial(tuple(found.get(k, Fraction(0)) for k in range(max(found) + 1)))))


def _of(exact: fmpq_poly) -> Polynomial:
    return Polynomial(tuple(Fraction(int(c.p), int(c.q)) for c in exact.coeffs()))


def _exact(polynomial: Polynomial) -> fmpq_poly:
    return fmpq_poly([fmpq(c.numerator, c.denominator) for c in polynomial.coefficients])


def fit(values: Mapping[int, Fraction], most: int = 2) -> Polynomial | None:
    """The polynomial of least degree through all values; None where the least is above `most`.

    Parameters
    ----------
    values : value for each n
    most : highest degree; one below the number of values is no evidence, which the caller has to judge
    """
    points = sorted(values.items())
    for degree in range(min(most, len(points) - 1) + 1):
        found = _through(points[: degree + 1])
        if all(found(n) == value for n, value in points):
            return found
    return None


def _through(points: Sequence[tuple[int, Fraction]]) -> Polynomial:
    """The polynomial through the points, by Newton.

    Each point adds what is missing there times the product of (n - m) over the points before.
    """
    total, product = fmpq_poly([]), fmpq_poly([1])
    for n, value in points:
        total += product * ((fmpq(value.numerator, value.denominator) - total(n)) / product(n))
        product *= fmpq_poly([-n, 1])
    return _of(total)


@dataclass(frozen=True)
class Quotient:
    """One polynomial by another, without common factors: a ratio as a function of n."""

    above: Polynomial
    below: Polynomial

    def __call__(self, n: int) -> Fraction:
        """Its value."""
        return self.above(n) / self.below(n)

    def __str__(self) -> str:
        """Whole part first where that is shorter to read: ``2 - 1/n``."""
        if self.below.degree == 0:
            return str(_of(_exact(self.above) / _exact(self.below)[0]))
        whole, rest = map(_of, divmod(_exact(self.above), _exact(self.below)))
        if whole.degree == 0 and rest.degree == 0 and whole.coefficients:
            c = rest(0)
            sign = "-" if c < 0 else "+"
            return f"{whole} {sign} {abs(c)}/{_in_brackets(self.below)}" if c else str(whole)
        return f"{_in_brackets(self.above)}/{_in_brackets(self.below)}"

    @property
    def growth(self) -> int:
        """It grows like n to this power."""
        return self.above.degree - self.below.degree

    @property
    def limit(self) -> Fraction:
        """What it tends to where it does not grow."""
        if self.growth < 0:
            return Fraction(0)
        return self.above.coefficients[-1] / self.below.coefficients[-1]


def quotient(above: Polynomial, below: Polynomial) -> Quotient:
    """above / below in lowest terms, with whole coefficients; `below` is not 0."""
    top, bottom = _exact(above), _exact(below)
    common = top.gcd(bottom)
    top, bottom = top // common, bottom // common
    scale = fmpq(top.denom().lcm(bottom.denom()))
    size = (top * scale).numer().content().gcd((bottom * scale).numer().content())
    scale /= size if bottom[bottom.degree()] > 0 else -size
    return Quotient(_of(top * scale), _of(bottom * scale))


def _in_brackets(one: Polynomial) -> str:
    text = str(one)
    return f"({text})" if " " in text or "*" in text else text
