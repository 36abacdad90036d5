"""Modules become one script that does what they do, or are refused."""

from __future__ import annotations

import pytest

from statek_sim.reporting.page.data import joined_modules
from tests.tables import table_test

NUMBERS = "export const one = 1;\nexport function two() { return 2; }\nconst spec = 3;\n"


def joined(**texts: str) -> str:
    """Join `view/page.js` and the modules beside it."""
    return joined_modules(
        "view/page.js", {f"view/{name}.js": text for name, text in texts.items()}.__getitem__
    )


def test_a_module_stands_behind_those_it_imports_and_each_once() -> None:
    script = joined(
        page='import { a } from "./a.js";\nimport { one } from "./numbers.js";\na(one);\n',
        a='import { one, two as three } from "./numbers.js";\nexport async function a() { return three(); }\n',
        numbers=NUMBERS,
    )
    places = [script.index(f'modules["view/{name}.js"] = ') for name in ("numbers", "a", "page")]
    assert places == sorted(places)
    assert script.count("const one = 1;") == 1
    assert 'const { one, two: three } = modules["view/numbers.js"];' in script
    assert "return { one, two };" in script
    assert "export" not in script
    assert "import" not in script


def test_imports_over_several_lines_and_from_other_folders_are_followed() -> None:
    texts = {"page.js": 'import {\n  one,\n  two,\n} from "./lib/numbers.js";\n', "lib/numbers.js": NUMBERS}
    script = joined_modules("page.js", texts.__getitem__)
    assert 'const { one, two } = modules["lib/numbers.js"];' in script


@table_test(
    "line",
    ['import page from "./a.js";', 'import * as a from "./a.js";', "export default 1;", "export { a };"],
)
def test_forms_that_are_not_known_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"^view/page\.js: .*: unsupported import or export form$"):
        joined(page=f"const a = 1;\n{line}\n")


def test_modules_that_import_each_other_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^view/page\.js: imports itself through view/page\.js and view/a\.js$"
    ):
        joined(page='import { a } from "./a.js";', a='import { b } from "./page.js";')
