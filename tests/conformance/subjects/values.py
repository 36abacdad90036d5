"""What outlives a reply: locals of every kind, and how they look (behaviour 3)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import END, ConformanceJob, code, console

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "locals_of_plain_kinds",
        "numbers, text, bytes, None and truth values stay as they are",
        "a = 1\nb = 2.5\nc = 'text'\nd = b'bytes'\ne = None\nf = True\ng = float('inf')\nh = -0.0\ni = ''",
        "print(a, b, c, d, e, f, g, h, i)\na\nb\nc\nd\ne\nf\ng\nh\ni",
        END,
    ),
    console(
        "locals_of_containers",
        "lists, tuples, dicts and sets stay, whatever is in them",
        "a = [1, [2, [3]], {'k': (1, 2)}]\nb = (1, 'x', None)\nc = {'k': [1, {'n': 2}], 5: 'five'}\nd = {3, 1, 2}",
        "a\nb\nc\nd",
        "a[1].append('new')\nc['k'][1]['n'] += 1\nd.add(4)\na\nc\nd",
        "print(a, b, c, d, len(a), sorted(d), list(c.items()))",
        END,
    ),
    console(
        "locals_with_times",
        "dates, times and date-times stay",
        "import datetime\na = datetime.datetime(2024, 1, 2, 3, 4, 5)\nb = a.date()\nc = a.time()",
        "a\nb\nc\nprint(a, b, c)",
        END,
    ),
    console(
        "locals_that_are_objects",
        "an application's object stays, with what was changed in it",
        "item = claim('one')\nitem",
        "item.status = 'CHANGED'\nprint(item.name, item.status)",
        "status_of(item)",
        END,
        tools=("claim", "status_of"),
    ),
    console(
        "one_list_two_names",
        "two names for one list, in this reply and in the next",
        "p = q = [1]\np.append(2)\nprint(p, q)",
        "p.append(3)\nprint(p, q, p is q)",
        END,
    ),
    console(
        "list_in_a_dict",
        "a list that also has a name of its own, in this reply and in the next",
        "part = [1]\nwhole = {'part': part}\npart.append(2)\nprint(whole)",
        "part.append(3)\nprint(whole, part)",
        END,
    ),
    console(
        "generator_is_lost",
        "a value that cannot be stored is lost, and so are the names bound after it",
        "a = 1\ng = (x for x in [1])\nb = 2\nprint('done')",
        "print(a)",
        "print(b)",
        "print(g)",
        END,
    ),
    console(
        "match_is_lost",
        "the result of re.match, as models use it",
        "import re\nm = re.match('a', 'ab')\nword = m.group(0)\nprint(word)",
        "print(word)",
        "print(m)",
        END,
    ),
    console(
        "kinds_that_are_lost",
        "one value per reply that the real package cannot store",
        "r = range(3)",
        "r",
        "s = frozenset([1])",
        "s",
        "c = 1 + 2j",
        "c",
        "i = iter([1])",
        "i",
        "f = [lambda: 1]",
        "f",
        "e = ValueError('x')",
        "e",
        "import datetime\nd = datetime.timedelta(days=1)",
        "d",
        "o = ...",
        "o",
        END,
    ),
    console(
        "huge_number", "an integer beyond 64 bits", "x = 2 ** 62\ny = 10 ** 30\nprint(x, y)", "x\ny", END
    ),
    console(
        "lost_value_and_wait",
        "a value that cannot be stored stands before a wait in the same reply",
        "r = range(3)\nx = wait_for('a')\nprint(x)\nexit('ok')",
        "print('next')",
        "exit('end')",
    ),
    console(
        "lost_value_in_warmup",
        "a value that cannot be stored is bound in warmup",
        "print('first')",
        END,
        warmup="r = range(3)\nprint(list(r))",
    ),
    console(
        "shared_values",
        "values that the job was started with",
        "print(topic, rows)\nrows.append(4)\ntopic = topic + '!'",
        "print(topic, rows)",
        END,
        shared={"topic": "apples", "rows": [1, 2, 3], "limits": {"most": 5}},
    ),
    console(
        "bound_then_failed",
        "names bound before an exception stay, the failing statement binds nothing",
        "a = 1\nb = a + 1\nc = 1 / 0\nd = 4",
        "print(a, b)",
        "print(c)",
        END,
    ),
    console(
        "loop_names",
        "loop variables, imports in functions and exception names",
        code("""
            for n, word in enumerate(["a", "b"]):
                last = word
            try:
                1 / 0
            except Exception as error:
                seen = str(error)
        """),
        "print(n, word, last, seen)",
        "error",
        END,
    ),
)
