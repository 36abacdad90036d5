"""One job on the real statek, over real HTTP: run by that package's interpreter, with `OPENAI_API_URL` set.

Prints what came of the job as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import warnings

warnings.simplefilter("ignore")

import dbzero as db0  # noqa: E402
import statek  # noqa: E402
from statek.agents.agent import SupervisedAgent  # noqa: E402
from statek.chat_style import ChatStyle  # noqa: E402
from statek.executors.job import JobStatus  # noqa: E402
from statek.executors.utils import job_worker  # noqa: E402
from statek.prompt_config import make_system_prompt  # noqa: E402
from statek.settings import StatekSettings  # noqa: E402
from statek.task import create_new_job  # noqa: E402


async def run(job: object) -> None:
    gate = asyncio.Semaphore(1)
    for _ in range(20):
        if job.status == JobStatus.DONE:
            return
        await job_worker(gate, job)


def main() -> None:
    db0.init(tempfile.mkdtemp(prefix="served-"), read_write=True, autocommit=False)
    db0.open("served", "rw")
    statek.init(StatekSettings())
    prompt = make_system_prompt("You count.")
    metadata = {"MODEL": "gpt-4o", "PROVIDER": "OPENAI"}
    agent = SupervisedAgent(role="counter", _system_prompt=prompt, _tools=[], _metadata=metadata)
    job = create_new_job(agent, {"start": 40})
    job.job_def.set_chat_style(ChatStyle.MARKDOWN)
    asyncio.run(run(job))
    usage = job.usage
    print(
        json.dumps(
            {
                "status": str(job.status),
                "exit": job.py_env.exit_status,
                "error": job.error,
                "input": usage.total_input_tokens,
                "output": usage.total_output_tokens,
            }
        )
    )


if __name__ == "__main__":
    main()
