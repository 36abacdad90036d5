"""Which names the stand-in modules have, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RUNTIME: Final = "statek_sim.runtime"
_HERE: Final = "statek_sim.stand_in"

_HOMES: Final[Mapping[str, str]] = {
    **{
        name: f"{_HERE}.tools:{name}"
        for name in ("create_tool", "find_tools", "select_tools", "subtask", "tool")
    },
    **{name: f"{_RUNTIME}.tools.documentation:{name}" for name in ("brief", "docs_style", "docstr")},
    "statek_context": f"{_HERE}.context:statek_context",
    **{
        name: f"{_RUNTIME}.execution.kept_names:{name}"
        for name in (
            "find_locals",
            "perm_ctx_get",
            "perm_ctx_set",
            "perm_ctx_set_unique",
            "statek_ctx_get",
            "statek_ctx_set",
        )
    },
    "error_handler": f"{_RUNTIME}.state.error_handlers:error_handler",
    "is_valid_error_handler": f"{_RUNTIME}.state.error_handlers:is_valid_error_handler",
    "ErrorHandler": f"{_RUNTIME}.state.error_handlers:ErrorHandler",
    "get_any": f"{_RUNTIME}.execution.builtin:get_any",
    "get_all": f"{_RUNTIME}.execution.builtin:get_all",
    "find_sub_task_handler": f"{_RUNTIME}.execution.builtin:find_sub_task_handler",
    "get_pending_notifications": f"{_RUNTIME}.execution.builtin:get_pending_notifications",
    "send_notification_to": f"{_RUNTIME}.execution.builtin:send_notification_to",
    "panic": f"{_RUNTIME}.execution.builtin:panic",
    "create_sub_task": f"{_RUNTIME}.jobs.subtask:create_sub_task",
    "complete_sub_task": f"{_RUNTIME}.jobs.subtask:complete_sub_task",
    "SubTaskHandler": f"{_RUNTIME}.jobs.subtask:SubTaskHandler",
    "SubTaskState": f"{_RUNTIME}.jobs.subtask:SubTaskState",
    "TaskError": f"{_RUNTIME}.jobs.subtask:TaskError",
    **{
        name: f"{_HERE}.task:{name}"
        for name in (
            "create_new_job",
            "delegate_mute_dialog",
            "delegate_mute_task",
            "delegate_task",
            "start_dialog",
            "submit_new_job",
            "submit_new_jobs_batch",
        )
    },
    **{name: f"{_HERE}.code_reading:{name}" for name in ("copy_locals", "get_referenced_locals")},
    "temporal": f"{_RUNTIME}.state.futures:temporal",
    "get_any_future": f"{_RUNTIME}.state.futures:get_any_future",
    "get_all_future": f"{_RUNTIME}.state.futures:get_all_future",
    "FutureResult": f"{_HERE}.futures:FutureResult",
    "FutureError": f"{_RUNTIME}.state.futures:FutureError",
    **{
        name: f"{_RUNTIME}.jobs.post_processing:{name}"
        for name in ("CallParams", "LLM_StepData", "parse_post_processors")
    },
    **{name: f"{_HERE}.post_processing:{name}" for name in ("FinalCheck", "PostProcessor")},
    **{
        name: f"{_HERE}.pricing:{name}" for name in ("ModelPricing", "get_model_pricing", "set_model_pricing")
    },
    **{name: f"{_HERE}.researcher:{name}" for name in ("MessageDispatcher", "Researcher")},
    **{name: f"{_RUNTIME}.dialogs.dialog:{name}" for name in ("DialogItem",)},
    "TaskDifficulty": f"{_HERE}.jobs:TaskDifficulty",
    **{
        name: f"{_RUNTIME}.state.chat_log:{name}"
        for name in (
            "LLM_LogItem",
            "NotificationLogItem",
            "PostProcessedItem",
            "ReminderLogItem",
            "SubTaskLogItem",
            "ToolError",
            "UserLogItem",
            "WarmupLogItem",
        )
    },
    "CodeBlock": f"{_RUNTIME}.state.calls:CodeBlock",
    "LLM_Harness": "statek_sim.harness.harness:LLM_Harness",
    "LLM_HarnessError": "statek_sim.errors:LLM_HarnessError",
    "get_llm_harness": "statek_sim.harness.current:get_llm_harness",
    "StatekSettings": "statek_sim.harness.settings:StatekSettings",
    "get_statek_settings": f"{_HERE}.worker:get_statek_settings",
    **{
        name: f"{_HERE}.shown:{name}"
        for name in ("format_default_llm_repr", "format_llm_repr", "format_value_repr", "statek_print")
    },
    "get_current_job": f"{_RUNTIME}.jobs.current:get_current_job",
    "get_current_agent": f"{_RUNTIME}.jobs.current:get_current_agent",
    "get_current_agent_name": f"{_RUNTIME}.state.context:get_current_agent_name",
    "start_statek": f"{_HERE}.worker:start_statek",
    "start_statek_async": f"{_HERE}.worker:start_statek_async",
    "init": f"{_HERE}.worker:init",
    "open_prefix": f"{_HERE}.worker:open_prefix",
    "AgentLoopDef": f"{_HERE}.worker:AgentLoopDef",
    "run_agentic_fleet": f"{_HERE}.worker:run_agentic_fleet",
    "run_agentic_loop": f"{_HERE}.worker:run_agentic_loop",
    "StatekClientAPI": f"{_HERE}.worker:StatekClientAPI",
    "Agent": f"{_HERE}.agents:Agent",
    "SupervisedAgent": f"{_HERE}.agents:SupervisedAgent",
    "DialogAgent": f"{_HERE}.agents:DialogAgent",
    "Reminder": f"{_HERE}.agents:Reminder",
    "RecurringReminder": f"{_HERE}.agents:RecurringReminder",
    "WarmupDef": f"{_HERE}.agents:WarmupDef",
    "SystemPrompt": f"{_HERE}.prompts:SystemPrompt",
    "make_system_prompt": f"{_HERE}.prompts:make_system_prompt",
    "Job": f"{_RUNTIME}.jobs.job:Job",
    "JobDef": f"{_RUNTIME}.agents.job_def:JobDef",
    "JobDefError": f"{_RUNTIME}.agents.job_def:JobDefError",
    "JobStatus": f"{_RUNTIME}.state.status:JobStatus",
    "PyEnv": f"{_RUNTIME}.state.pyenv:PyEnv",
    **{
        name: f"{_HERE}.locale:{name}"
        for name in (
            "StatekCountryCode",
            "StatekLangCode",
            "StatekLocale",
            "get_language_hint",
            "get_language_rule",
            "resolve_locale",
        )
    },
    **{
        name: f"{_HERE}.shared_context:{name}"
        for name in (
            "ContextCategory",
            "ContextCategoryDict",
            "ContextVar",
            "SharedContext",
            "SharedContextProxy",
            "init_shared_context",
            "print_locals",
            "shared_context_set_var",
        )
    },
    "ChatStyle": f"{_RUNTIME}.state.chat_style:ChatStyle",
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
