"""Texts that dbzero's store knows: a stored enumeration takes each of them for a value that none of its members equals.

dbzero keeps the names of members, enumerations, their values and tags in one pool of a prefix, and looks a value up
there; only a text that is nowhere in it is refused (dbzero 0.7, by running it).
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = (
    "CONSOLE ChatStyle DIRECT DONE JobStatus MARKDOWN MD_DIALOG OPENAI OPENROUTER READY STARTED "
    "STATEK_JOB SUSPENDED TaskDifficulty USAGE WARMING_UP _Job__ext_ref _Job__last_difficulty "
    "_Job__pending_chat_log _chat_style _description _internal_tools _internal_tools_by_name _metadata "
    "_system_prompt _tools _tools_by_name agent awaited_result chat_log code console console_pos "
    "context_bytes created_at cumulative_token_usage error error_handlers exceptions exit_status "
    "extra_resources future_result global_state high input_price_per_M input_price_per_cached_M intro "
    "job_def job_params job_status llm_reasoning_payload llm_resp local_state locale low medium metadata "
    "next_instr_id next_instr_num num_completions output_price_per_M parent_job post_processing pricing "
    "provider_config push_log py_env request_difficulty role sections timestamp tool_calls tool_log "
    "total_bytes_received total_bytes_sent total_cached_tokens total_input_tokens total_output_tokens "
    "total_reported_cost usage warmup_block_num warmup_code warmup_def"
)
OF_STATEK: Final = frozenset(_WORDS.split())
"""Those that STATEK 1.4.2 itself has put there by the time that a job's first reply is executed."""
