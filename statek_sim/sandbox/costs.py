"""What every operation that model-written code can reach costs: the one list.

Each method of each type, each type that can be called, and each builtin and exported function stands here with its
rule. `FREE` costs what any call costs, because neither its time nor its result grows with anything. `OWN` says that
the function which stands in place of Python's pays for itself, item by item or by rules of its own. What is missing
here is an oversight, and a test says so.
"""

from __future__ import annotations

import datetime
import re
from abc import ABCMeta
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from types import GeneratorType, MappingProxyType
from typing import Any, Final

from statek_sim.sandbox import method_payments as pay
from statek_sim.sandbox.intake import Args, CallPayment, Value
from statek_sim.sandbox.lazy import GuardedGenerator, LazyIterator
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet
from statek_sim.sandbox.regex import PaidPattern, paying_plain
from statek_sim.sandbox.type_payments import TYPES


def _free(_budget: object, _owner: Value, args: Args, _kwargs: Mapping[str, Value]) -> Args:
    return args


def _own(_budget: object, _owner: Value, args: Args, _kwargs: Mapping[str, Value]) -> Args:
    return args


FREE: Final[CallPayment] = _free
OWN: Final[CallPayment] = _own

Rules = Mapping[str, CallPayment]


def _named(rule: CallPayment, names: str) -> dict[str, CallPayment]:
    return dict.fromkeys(names.split(), rule)


_TEXT: Final[Rules] = {
    **_named(
        pay.copying,
        "partition removeprefix removesuffix rpartition hex fromhex",
    ),
    **_named(pay.stripping, "lstrip rstrip strip"),
    **_named(pay.changing_case, "capitalize casefold lower swapcase title upper"),
    **_named(pay.encoding, "encode decode"),
    **_named(pay.finding, "count find index rfind rindex"),
    **_named(pay.searching, "endswith startswith isascii"),
    **_named(
        pay.testing,
        "isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper",
    ),
    **_named(pay.splitting, "split rsplit splitlines"),
    **_named(pay.padding, "ljust rjust center zfill"),
    **_named(pay.expanding_tabs, "expandtabs"),
    **_named(pay.replacing, "replace"),
    **_named(pay.joining, "join"),
    **_named(pay.translating, "translate"),
    **_named(pay.taking_in, "maketrans"),
    **_named(pay.formatting, "format"),
    **_named(pay.formatting_by_name, "format_map"),
}
_SET: Final[Rules] = {
    **_named(pay.hashing, "add discard remove"),
    **_named(pay.popping, "pop"),
    **_named(pay.copying, "copy"),
    **_named(FREE, "clear"),
    **_named(
        pay.taking_in,
        "update union intersection difference symmetric_difference intersection_update difference_update"
        " symmetric_difference_update issubset issuperset isdisjoint",
    ),
}
_DICT: Final[Rules] = {
    **_named(pay.hashing, "get setdefault"),
    **_named(pay.moving, "pop"),
    **_named(pay.copying, "copy"),
    **_named(pay.taking_in, "update fromkeys"),
    **_named(FREE, "clear items keys values popitem"),
}
_WHOLE_NUMBER: Final[Rules] = {
    **_named(pay.to_bytes, "to_bytes"),
    **_named(pay.copying, "from_bytes"),
    **_named(pay.counting_bits, "as_integer_ratio bit_count"),
    # From Python 3.12 on.
    **_named(FREE, "is_integer"),
    **_named(FREE, "bit_length conjugate"),
}
_DECIMAL_NAMES: Final = (
    "adjusted canonical compare compare_signal compare_total compare_total_mag conjugate copy_abs copy_negate copy_sign"
    " fma from_float is_canonical is_finite is_infinite is_nan is_normal is_qnan is_signed is_snan is_subnormal is_zero"
    " logb logical_and logical_invert logical_or logical_xor max max_mag min min_mag next_minus next_plus next_toward"
    " normalize number_class quantize radix remainder_near rotate same_quantum scaleb shift to_integral"
    " to_integral_exact to_integral_value"
)
_DATE_FREE: Final = (
    "combine ctime date dst fromisocalendar fromisoformat fromordinal fromtimestamp isocalendar isoformat isoweekday"
    " now replace time timestamp timetuple timetz today toordinal tzname utcfromtimestamp utcnow utcoffset utctimetuple"
    " weekday astimezone fromutc total_seconds"
)

_SCANNER: Final[type[Any]] = type(re.compile("").scanner(""))  # type: ignore[attr-defined]  # not documented

METHODS: Final[Mapping[type[Any], Rules]] = {
    str: _TEXT,
    bytes: _TEXT,
    list: {
        **_named(pay.copying, "copy reverse"),
        **_named(pay.searching, "count index remove"),
        **_named(pay.moving, "insert pop"),
        **_named(pay.sorting, "sort"),
        **_named(pay.extending, "extend"),
        **_named(FREE, "append clear"),
    },
    tuple: _named(pay.searching, "count index"),
    range: _named(pay.searching, "count index"),
    slice: _named(FREE, "indices"),
    deque: {
        **_named(pay.copying, "copy reverse rotate"),
        **_named(pay.searching, "count index remove"),
        **_named(pay.moving, "insert"),
        **_named(pay.extending, "extend extendleft"),
        **_named(FREE, "append appendleft clear pop popleft"),
    },
    dict: _DICT,
    defaultdict: {},
    OrderedDict: _named(pay.hashing, "move_to_end"),
    Counter: {
        **_named(pay.repeating, "elements"),
        **_named(pay.ranking, "most_common"),
        **_named(pay.counting, "subtract update"),
        **_named(pay.copying, "total"),
    },
    type({}.keys()): _named(pay.taking_in, "isdisjoint"),
    type({}.values()): {},
    type({}.items()): _named(pay.taking_in, "isdisjoint"),
    MappingProxyType: {
        **_named(pay.hashing, "get"),
        **_named(pay.copying, "copy"),
        **_named(FREE, "items keys values"),
    },
    set: _SET,
    frozenset: _SET,
    OrderedSet: {},
    OrderedFrozenSet: {},
    int: _WHOLE_NUMBER,
    bool: _WHOLE_NUMBER,
    float: _named(FREE, "as_integer_ratio conjugate fromhex hex is_integer"),
    complex: _named(FREE, "conjugate"),
    Decimal: {
        **_named(pay.unpacking_decimal, "as_integer_ratio as_tuple to_eng_string"),
        **_named(pay.deriving, "exp ln log10 sqrt"),
        **_named(pay.deciding, _DECIMAL_NAMES),
    },
    Fraction: {
        **_named(pay.approximating, "limit_denominator"),
        **_named(pay.converting, "from_decimal from_float"),
        **_named(FREE, "as_integer_ratio conjugate is_integer"),
    },
    datetime.date: {**_named(pay.writing_time, "strftime"), **_named(FREE, _DATE_FREE)},
    datetime.datetime: _named(pay.reading_time, "strptime"),
    datetime.time: {**_named(pay.writing_time, "strftime"), **_named(FREE, _DATE_FREE)},
    datetime.timedelta: _named(FREE, _DATE_FREE),
    datetime.tzinfo: _named(FREE, _DATE_FREE),
    re.Match: {
        **_named(pay.expanding, "expand"),
        **_named(pay.copying_groups, "group groups groupdict"),
        **_named(FREE, "end span start"),
    },
    PaidPattern: _named(OWN, "findall finditer fullmatch match search split sub subn"),
    # `match.re`; its scanner pays for all that it may find when it is made.
    re.Pattern: _named(paying_plain, "findall finditer fullmatch match scanner search split sub subn"),
    _SCANNER: _named(FREE, "match search"),
    LazyIterator: _named(OWN, "from_iterable"),
    GuardedGenerator: _named(OWN, "close send throw"),
    GeneratorType: _named(OWN, "close send throw"),
    # What `Counter.elements` gives is Python's own chain.
    chain: _named(pay.chaining, "from_iterable"),
    type: _named(FREE, "mro"),
    ABCMeta: _named(FREE, "register"),
    BaseException: _named(FREE, "add_note with_traceback"),
}
"""Type -> method -> rule; a type has the methods of its bases too."""

CALLED_TYPES: Final = TYPES
"""Type -> rule for calling it."""

FREE_TYPES: Final = frozenset({bool, slice, datetime.time, datetime.timedelta, datetime.timezone})
"""Types whose values are small, whatever they are made of."""

BUILTINS: Final[Rules] = {
    **_named(
        OWN,
        "abs all any bin divmod enumerate filter format frozenset hash hex isinstance issubclass iter map max min oct"
        " pow repr reversed round set sorted sum zip",
    ),
    **_named(FREE, "callable chr len next ord"),
}
"""Functions that need no import; those that are types stand in `CALLED_TYPES` and `FREE_TYPES`."""

_MATH_FREE: Final = (
    "acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees erf erfc exp expm1 fabs fmod frexp gamma hypot"
    " isclose isfinite isinf isnan ldexp lgamma log log10 log1p log2 modf nextafter pow radians remainder sin sinh sqrt"
    " tan tanh ulp"
)
EXPORTS: Final[Mapping[str, Rules]] = {
    "datetime": {},
    "calendar": {
        **_named(OWN, "monthrange weekday isleap"),
        **_named(FREE, "day_name day_abbr month_name month_abbr"),
    },
    "time": _named(OWN, "strftime"),
    "re": _named(OWN, "compile search match fullmatch findall finditer sub subn split escape"),
    "math": {
        **_named(OWN, "ceil comb dist factorial floor fsum gcd isqrt lcm perm prod trunc"),
        **_named(FREE, _MATH_FREE),
    },
    "decimal": {},
    "fractions": {},
    "statistics": _named(
        OWN,
        "mean fmean geometric_mean harmonic_mean median median_low median_high median_grouped mode multimode pstdev"
        " pvariance stdev variance quantiles correlation covariance linear_regression",
    ),
    "collections": {},
    "itertools": _named(
        OWN,
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby"
        " islice pairwise permutations product repeat starmap takewhile tee zip_longest",
    ),
    "functools": _named(OWN, "reduce"),
    "operator": {
        **_named(
            OWN,
            "abs add and_ concat contains countOf eq floordiv ge gt indexOf inv invert le lshift lt mod mul ne neg or_"
            " pos pow rshift sub truediv xor",
        ),
        **_named(FREE, "index is_ is_not length_hint matmul not_ truth"),
    },
    "json": _named(OWN, "loads dumps"),
}
"""Module -> function -> rule; types and constants need none."""


_PAID: Final[dict[type[Any], Rules]] = {}


def rules_of(kind: type[Any]) -> Rules:
    """Return what the methods of `kind` and of its bases cost, those that cost something; none for unknown types."""
    known = _PAID.get(kind)
    if known is None:
        found: dict[str, CallPayment] = {}
        for base in reversed(kind.__mro__):
            found.update(METHODS.get(base, {}))
        known = _PAID[kind] = {
            name: rule for name, rule in found.items() if rule is not FREE and rule is not OWN
        }
    return known


def rule_for(kind: type[Any], name: str) -> CallPayment | None:
    """Return the rule of a method of `kind`, `FREE` and `OWN` too, or None for one that is not listed."""
    return next((METHODS[base][name] for base in kind.__mro__ if name in METHODS.get(base, {})), None)
