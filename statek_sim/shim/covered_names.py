"""Which names the stand-in modules have, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RUNTIME: Final = "statek_sim.runtime"
_HERE: Final = "statek_sim.shim"

_DEFINED: Final[Mapping[str, str]] = {
    f"{_HERE}.tools": "create_tool find_tools select_tools subtask tool",
    f"{_RUNTIME}.tools.documentation": "brief docs_style docstr",
    f"{_RUNTIME}.execution.kept_names": (
        "find_locals perm_ctx_get perm_ctx_set perm_ctx_set_unique statek_ctx_get statek_ctx_set"
    ),
    f"{_RUNTIME}.state.error_handlers": "ErrorHandler error_handler is_valid_error_handler",
    f"{_RUNTIME}.execution.builtin": (
        "find_sub_task_handler get_all get_any get_pending_notifications panic send_notification_to"
    ),
    f"{_RUNTIME}.jobs.subtask": "SubTaskHandler SubTaskState TaskError complete_sub_task create_sub_task",
    f"{_RUNTIME}.task": (
        "create_new_job delegate_mute_dialog delegate_mute_task delegate_task start_dialog "
        "submit_new_job submit_new_jobs_batch"
    ),
    f"{_RUNTIME}.agents.code_reading": "copy_locals get_referenced_locals",
    f"{_RUNTIME}.state.futures": "FutureError get_all_future get_any_future temporal",
    f"{_RUNTIME}.jobs.post_processing": "CallParams LLM_StepData parse_post_processors",
    f"{_HERE}.base_classes": "FinalCheck FutureResult PostProcessor",
    f"{_HERE}.pricing": "ModelPricing get_model_pricing set_model_pricing",
    f"{_HERE}.researcher": "MessageDispatcher Researcher",
    f"{_RUNTIME}.dialogs.dialog": "DialogItem",
    f"{_HERE}.jobs": "TaskDifficulty",
    f"{_RUNTIME}.state.chat_log": (
        "LLM_LogItem NotificationLogItem PostProcessedItem ReminderLogItem SubTaskLogItem ToolError "
        "UserLogItem WarmupLogItem"
    ),
    f"{_RUNTIME}.state.calls": "CodeBlock",
    "statek_sim.harness.harness": "LLM_Harness",
    "statek_sim.errors": "LLM_HarnessError",
    "statek_sim.harness.current": "get_llm_harness",
    "statek_sim.harness.settings": "StatekSettings",
    f"{_HERE}.worker": (
        "statek_context AgentLoopDef StatekClientAPI get_statek_settings init open_prefix run_agentic_fleet "
        "run_agentic_loop start_statek start_statek_async"
    ),
    f"{_HERE}.llm_format": "format_default_llm_repr format_llm_repr format_value_repr statek_print",
    f"{_RUNTIME}.jobs.current": "get_current_agent get_current_job",
    f"{_RUNTIME}.state.context": "get_current_agent_name",
    f"{_HERE}.agents": (
        "Agent DialogAgent RecurringReminder Reminder SupervisedAgent SystemPrompt WarmupDef make_system_prompt"
    ),
    f"{_RUNTIME}.jobs.job": "Job",
    f"{_RUNTIME}.agents.job_def": "JobDef JobDefError",
    f"{_RUNTIME}.state.status": "JobStatus",
    f"{_RUNTIME}.state.pyenv": "PyEnv",
    f"{_HERE}.locale": (
        "StatekCountryCode StatekLangCode StatekLocale get_language_hint get_language_rule resolve_locale"
    ),
    f"{_HERE}.shared_context": (
        "ContextCategory ContextCategoryDict ContextVar SharedContext SharedContextProxy "
        "init_shared_context print_locals shared_context_set_var"
    ),
    f"{_RUNTIME}.state.chat_style": "ChatStyle",
}
"""Names by the module that defines them; a module needs no list of its own."""

_HOMES: Final[Mapping[str, str]] = {
    name: f"{module}:{name}" for module, names in _DEFINED.items() for name in names.split()
}

_SHARED: Final = (
    "ContextCategory ContextCategoryDict ContextVar init_shared_context print_locals shared_context_set_var"
)
_NAMES: Final[Mapping[str, str]] = {
    "statek": (
        "FinalCheck LLM_Harness LLM_HarnessError LLM_StepData PostProcessor StatekSettings SubTaskHandler "
        "SubTaskState TaskError complete_sub_task create_new_job create_sub_task docs_style docstr "
        "error_handler find_sub_task_handler find_tools format_default_llm_repr get_all get_any "
        "get_current_agent get_current_agent_name get_current_job get_llm_harness get_pending_notifications "
        "get_statek_settings init is_valid_error_handler open_prefix send_notification_to start_statek "
        "start_statek_async statek_print subtask tool " + _SHARED
    ),
    "statek.agents": (
        "Agent DialogAgent MessageDispatcher RecurringReminder Reminder Researcher SupervisedAgent WarmupDef"
    ),
    "statek.agents.agent": "Agent SupervisedAgent WarmupDef",
    "statek.agents.dialog_agent": "DialogAgent RecurringReminder Reminder",
    "statek.agents.message_dispatcher": "MessageDispatcher",
    "statek.agents.researcher": "Researcher",
    "statek.chat_style": "ChatStyle",
    "statek.dbzero_restricted": "open_prefix",
    "statek.exceptions": "FutureError LLM_HarnessError",
    "statek.executors": "",
    "statek.executors.chat_log_item": (
        "LLM_LogItem NotificationLogItem PostProcessedItem ReminderLogItem SubTaskLogItem ToolError UserLogItem "
        "WarmupLogItem"
    ),
    "statek.executors.job": "DialogItem ErrorHandler Job JobDef JobDefError JobStatus",
    "statek.executors.post_processor": "FinalCheck PostProcessor parse_post_processors",
    "statek.executors.utils": "AgentLoopDef run_agentic_fleet run_agentic_loop",
    "statek.future": "FutureResult get_all_future get_any_future temporal",
    "statek.llm_api": "CallParams LLM_StepData",
    "statek.llm_harness": "LLM_Harness get_llm_harness",
    "statek.locale": (
        "StatekCountryCode StatekLangCode StatekLocale get_language_hint get_language_rule resolve_locale"
    ),
    "statek.model_pricing": "ModelPricing get_model_pricing set_model_pricing",
    "statek.prompt_config": "SystemPrompt make_system_prompt",
    "statek.pyenv": "PyEnv",
    "statek.runner": "start_statek start_statek_async",
    "statek.settings": "StatekSettings get_statek_settings",
    "statek.shared_context": f"{_SHARED} SharedContext SharedContextProxy",
    "statek.statek_client_api": "StatekClientAPI",
    "statek.system": (
        "brief create_tool docs_style docstr error_handler find_sub_task_handler find_tools get_all get_any "
        "get_current_agent_name get_current_job get_pending_notifications is_valid_error_handler panic select_tools "
        "subtask tool"
    ),
    "statek.task": (
        "SubTaskHandler SubTaskState TaskError complete_sub_task copy_locals create_new_job create_sub_task "
        "delegate_mute_dialog delegate_mute_task delegate_task get_current_job get_referenced_locals "
        "send_notification_to start_dialog submit_new_job submit_new_jobs_batch"
    ),
    "statek.task_difficulty": "TaskDifficulty",
    "statek.testing": "statek_context",
    "statek.utils": (
        "CodeBlock find_locals format_default_llm_repr format_llm_repr format_value_repr get_current_agent "
        "get_current_agent_name get_current_job perm_ctx_get perm_ctx_set perm_ctx_set_unique statek_ctx_get "
        "statek_ctx_set statek_print"
    ),
}
"""STATEK's modules with the names that each of them has there: one that STATEK has elsewhere is not to be found."""

_QUERIES: Final = f"{_HERE}.queries"
_DBZERO: Final[Mapping[str, str]] = {
    **{name: f"{_QUERIES}:{name}" for name in ("as_tag", "exists", "fetch", "find", "no", "tags", "uuid")},
    "filter": f"{_QUERIES}:filter_",
    **{name: f"{_HERE}.memo:{name}" for name in ("enum", "is_enum", "is_enum_value", "is_memo", "memo")},
    "index": f"{_HERE}.index:index",
    **{
        name: f"{_HERE}.store:{name}"
        for name in ("get_current_prefix", "get_prefix_of", "immutable", "set_prefix")
    },
    **dict.fromkeys(("close", "commit", "init", "open"), f"{_HERE}.store:nothing"),
}

MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    **{module: {name: _HOMES[name] for name in names.split()} for module, names in _NAMES.items()},
    "dbzero": _DBZERO,
}
"""Name of module -> name -> `module:attribute` it stands for."""


def elsewhere(module: str, name: str) -> list[str]:
    """Return the modules that have a name which `module` lacks."""
    return [other for other, names in MODULES.items() if name in names and other != module]
