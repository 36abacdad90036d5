"""The names that each importable module offers to restricted code (STATEK 1.4.2, behaviour 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EXPORTED_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "datetime": _names("date datetime time timedelta timezone"),
    "calendar": _names("monthrange weekday isleap day_name day_abbr month_name month_abbr"),
    "time": _names("strftime"),
    "re": _names(
        "compile search match fullmatch findall finditer sub subn split escape"
        " ASCII A IGNORECASE I LOCALE L MULTILINE M DOTALL S VERBOSE X NOFLAG"
    ),
    "math": _names(
        "acos acosh asin asinh atan atan2 atanh ceil comb copysign cos cosh degrees dist erf erfc exp expm1 fabs"
        " factorial floor fmod frexp fsum gamma gcd hypot isclose isfinite isinf isnan isqrt lcm ldexp lgamma log"
        " log10 log1p log2 modf nextafter perm pow prod radians remainder sin sinh sqrt tan tanh trunc ulp"
        " pi e tau inf nan"
    ),
    "decimal": _names(
        "Decimal ROUND_CEILING ROUND_FLOOR ROUND_UP ROUND_DOWN ROUND_HALF_UP ROUND_HALF_DOWN ROUND_HALF_EVEN"
        " ROUND_05UP"
    ),
    "fractions": _names("Fraction"),
    "statistics": _names(
        "StatisticsError mean fmean geometric_mean harmonic_mean median median_low median_high median_grouped mode"
        " multimode pstdev pvariance stdev variance quantiles correlation covariance linear_regression"
    ),
    "collections": _names("Counter deque defaultdict OrderedDict"),
    "itertools": _names(
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse"
        " groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest"
    ),
    "functools": _names("reduce"),
    "operator": _names(
        "abs add and_ concat contains countOf eq floordiv ge gt index indexOf inv invert is_ is_not le length_hint"
        " lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor"
    ),
    "json": _names("loads dumps"),
}
"""Module name -> exported names; every other attribute is refused."""
