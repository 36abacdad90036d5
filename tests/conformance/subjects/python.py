"""What code means: statements, names, errors, the sandbox (behaviour 3)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import END, ConformanceJob, code, console

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "delete_a_name",
        "`del` in the statement after the assignment, and in a later reply",
        "x=1\ndel x",
        "print(x)",
        "x=5",
        "del x",
        "print(x)",
        "exit('ok')",
    ),
    console(
        "loop_fails",
        "what a loop bound before it failed is kept",
        "for i in range(3):\n    y=i\n    if i==1: 1/0",
        "y",
        "exit(1)",
    ),
    console(
        "recursion",
        "functions call themselves and end with their block",
        "def f(n):\n    return n if n==0 else f(n-1)\nprint(f(20))",
        "f(1)",
        END,
    ),
    console(
        "lambda",
        "lambdas and functions are gone in the next reply",
        "f=lambda x: x+1\nprint(f(1))\ndef g(): return 5\nprint(g())",
        "g()",
        END,
    ),
    console(
        "closures",
        "nested functions with nonlocal state, defaults and star arguments",
        code("""
            def counter(start=1):
                total = start
                def add(*values, **named):
                    nonlocal total
                    total += sum(values) + sum(named.values())
                    return total
                return add
            add = counter()
            print(add(1, 2), add(x=5), add(*[1, 1], **{"y": 2}))
        """),
        "add(1)",
        END,
    ),
    console(
        "no_code",
        "comments and bare strings are no code",
        "# nothing",
        "'just a string'",
        END,
    ),
    console(
        "exit_without_value",
        "exit() does nothing, exit(0) ends the job",
        "exit()\nprint('still')",
        "exit(0)\nprint('no')",
    ),
    console(
        "exit_in_function",
        "exit inside a function, in a loop: the statement runs on, the next one does not",
        code("""
            def leave():
                exit('inside')
                note('same statement')
                return 'left'
            for n in range(2):
                print(n, leave())
            note('next statement')
        """),
    ),
    console(
        "exit_in_try",
        "exit is no exception: neither except nor finally sees one",
        code("""
            try:
                exit('tried')
                note('after exit')
            except Exception as error:
                note('except')
            finally:
                note('finally')
            note('next statement')
        """),
    ),
    console("exit_with_object", "the exit value may be any value", "exit({'a': [1, None]})"),
    console(
        "exit_with_tool_result",
        "the exit value comes out of a tool",
        "exit(echo('from a tool'))",
        tools=("echo",),
    ),
    console(
        "sandbox",
        "what restricted code may not do, and what it has no names for",
        "open('x')",
        "import os",
        "x.__class__",
        "def f(:",
        "import math\nprint(math.pi)",
        "math.pi",
        "type(1)",
        "try:\n    1/0\nexcept ZeroDivisionError:\n    pass",
        "class A: pass",
        "x: int = 1",
        "print(hasattr(1,'a'))",
        "assert 1==2",
        "exit('ok')",
    ),
    console(
        "sandbox_more",
        "imports, dunders, async code and reserved names",
        "from math import *",
        "import collections.abc",
        "from . import x",
        "async def f(): pass",
        "yield 1",
        "return 1",
        "x._private",
        "_fine = 1\nprint(_fine)",
        "_fine",
        "__name__",
        "eval('1')",
        "getattr('a', 'upper')()",
        "globals()",
        "'{0.__class__}'.format(1)",
        "print(__import__('os'))",
        "exit('ok')",
    ),
    console(
        "comprehensions",
        "lists, generators, dicts and sets in one reply, and their names in the next",
        "xs=[i for i in range(3)]\nt=sum(x for x in xs)\nprint(xs,t)\nd={k:v for k,v in zip('ab',xs)}\nd",
        "with_=1\nwhile with_<4: with_+=1\nprint(with_)",
        "print([(a, b) for a in xs for b in xs if a < b], {x % 2 for x in xs})",
        "print(list(x * 2 for x in xs), any(x > 1 for x in xs))",
        "exit('k')",
    ),
    console(
        "generator_function",
        "a generator made by a function of the same block",
        code("""
            def pairs(limit):
                for n in range(limit):
                    yield n, n * n
            found = dict(pairs(3))
            print(found, [n for n, _ in pairs(2)])
        """),
        "found",
        END,
    ),
    console(
        "globals_",
        "global statements at the top and in functions",
        "global g\ng=1",
        "print(g)",
        "def f():\n    global h\n    h=5\nf()\nprint(h)",
        "print(h)",
        "exit('k')",
    ),
    console(
        "imports",
        "imported names are gone in the next reply, results stay",
        "from math import sqrt as s\nprint(s(4))",
        "s(9)",
        "import json\nj=json.dumps({'a':1})",
        "print(j)",
        "exit('k')",
    ),
    console(
        "allowed_modules",
        "the modules that restricted code may import",
        "import re, math, statistics\nprint(re.sub('a','b','aa'), math.floor(2.5), statistics.mean([1,2]))",
        "from decimal import Decimal\nfrom fractions import Fraction\nprint(Decimal('1.10') + 1, Fraction(1, 3))",
        "from collections import Counter, defaultdict\nprint(Counter('aab').most_common(1), dict(defaultdict(int)))",
        "from itertools import chain, combinations\nprint(list(chain([1],[2])), list(combinations('abc', 2)))",
        "from functools import reduce\nfrom operator import add\nprint(reduce(add, [1,2,3]))",
        "import datetime\nday = datetime.date(2024, 2, 29)\nprint(day, day + datetime.timedelta(days=1))",
        "day",
        "import time\ntime.sleep(1)",
        "import random",
        "import calendar\nprint(calendar.monthrange(2024, 2))",
        END,
    ),
    console(
        "assignments",
        "augmented, starred and chained assignments, and changes in place",
        "x=1\nx+=2\nx",
        "l=[1]\nl+=[2]\nl.append(3)\nl",
        "l",
        "a,*b=range(4)\nb",
        "p = q = {'k': 1}\np['z'] = 2\nq",
        "(n := 5)\nprint(n)",
        "n",
        "exit('k')",
    ),
    console(
        "errors",
        "what the console says about exceptions",
        "raise KeyError('k')",
        "raise ValueError",
        "[][1]",
        "{}['a']",
        "int('x')",
        "None.foo",
        "1+'a'",
        "exit('k')",
    ),
    console(
        "more_errors",
        "calls that do not fit, chained exceptions, odd raises",
        "note()",
        "note('a', 'b')",
        "unknown_tool(1)",
        "def f(a): return a\nf()",
        "raise ValueError('first') from KeyError('second')",
        "raise 'text'",
        "raise RuntimeError('two\\nlines')",
        "'abc'.nothing",
        "a, b = 1, 2, 3",
        "[1, 2, 3]()",
        "float('1,5')",
        "x = undefined_name",
        "exit('k')",
    ),
    console(
        "caught",
        "an exception of a tool is caught by the code that called it",
        "try:\n    refuse('q')\nexcept ValueError as e:\n    print('caught', e)\nexit('k')",
    ),
    console(
        "caught_by_name",
        "which exception names code may catch, and what else and finally do",
        code("""
            for key in ("a", "b"):
                try:
                    value = {"a": 1}[key]
                except KeyError as error:
                    print("missing", error)
                else:
                    print("found", value)
                finally:
                    print("looked up", key)
        """),
        "try:\n    [][0]\nexcept (IndexError, TypeError) as error:\n    print('caught', error)",
        "try:\n    1/0\nexcept Exception as error:\n    print('caught', error)",
        "try:\n    1/0\nfinally:\n    note('finally ran')",
        "try:\n    1/0\nexcept:\n    print('bare')",
        END,
    ),
    console(
        "tool_in_function",
        "an exception of a tool passes through the function that called it",
        "def h(): refuse('x')\nh()",
        "exit('k')",
    ),
    console(
        "with_statement",
        "with needs a context manager, match and walrus work",
        "with 5 as x:\n    pass",
        "match {'a': 1}:\n    case {'a': n}:\n        print('one', n)\n    case _:\n        print('other')",
        "n",
        "print('yes' if (m := 3) > 2 else 'no', m)",
        END,
    ),
    console(
        "shadowed_names",
        "code may bind the names of tools and builtins",
        "note = 5\nprint(note)",
        "print(note)\nlist = [1]\nprint(list)",
        "print(list, len(list))",
        "del note\nnote('back')",
        "note('again')",
        END,
    ),
)
