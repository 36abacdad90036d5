"""Which names the stand-in modules have, where each comes from, and the import finder that serves them.

The finder is put where `import` looks for `statek` and `dbzero`, and taken away again. What the stand-ins do not have
is one error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final

from statek_sim.errors import BadInput

ADVICE: Final = (
    "the reference runtime does not cover it; run these tests on the real package: "
    "pip install 'statek[dbzero]' and pytest --statek-backend=installed"
)


class NotCovered(ImportError):
    """Something of STATEK or dbzero that the reference runtime lacks."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {ADVICE}", name=what.partition(" ")[0])


class ModuleNotCovered(ModuleNotFoundError):
    """A whole module that the reference runtime lacks."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module}: {ADVICE}", name=module)


_RUNTIME: Final = "statek_sim.runtime"
_HERE: Final = "statek_sim.shim"

_DEFINED: Final[Mapping[str, str]] = {
    f"{_HERE}.tools": "create_tool find_tools select_tools subtask tool",
    f"{_RUNTIME}.tools.documentation": "brief docs_style docstr",
    f"{_RUNTIME}.execution.toolbox": (
        "find_locals perm_ctx_get perm_ctx_set perm_ctx_set_unique statek_ctx_get statek_ctx_set"
    ),
    f"{_RUNTIME}.state.error_handlers": "ErrorHandler error_handler is_valid_error_handler",
    f"{_RUNTIME}.execution.builtin_tools": (
        "find_sub_task_handler get_all get_any get_pending_notifications panic send_notification_to"
    ),
    f"{_RUNTIME}.jobs.subtask": "SubTaskHandler SubTaskState TaskError complete_sub_task create_sub_task",
    f"{_RUNTIME}.task": (
        "create_new_job delegate_mute_dialog delegate_mute_task delegate_task start_dialog "
        "submit_new_job submit_new_jobs_batch"
    ),
    f"{_RUNTIME}.agents.warmup_source": "copy_locals get_referenced_locals",
    f"{_RUNTIME}.state.futures": "FutureError get_all_future get_any_future temporal",
    f"{_RUNTIME}.jobs.post_processing": "CallParams LLM_StepData parse_post_processors",
    f"{_RUNTIME}.agents.dialog": "DialogItem",
    f"{_HERE}.jobs": (
        "FinalCheck FutureResult ModelPricing PostProcessor StatekCountryCode StatekLangCode StatekLocale "
        "TaskDifficulty get_language_hint get_language_rule get_model_pricing resolve_locale set_model_pricing"
    ),
    f"{_RUNTIME}.state.chat_log": (
        "CodeBlock LLM_LogItem NotificationLogItem PostProcessedItem ReminderLogItem SubTaskLogItem ToolError "
        "UserLogItem WarmupLogItem"
    ),
    "statek_sim.harness.harness": "LLM_Harness",
    "statek_sim.errors": "LLM_HarnessError",
    "statek_sim.harness.current": "get_llm_harness",
    "statek_sim.harness.settings": "StatekSettings",
    f"{_HERE}.worker": (
        "statek_context AgentLoopDef StatekClientAPI get_statek_settings init open_prefix run_agentic_fleet "
        "run_agentic_loop start_statek start_statek_async"
    ),
    f"{_HERE}.internal_attrs": "format_default_llm_repr format_llm_repr format_value_repr statek_print",
    f"{_RUNTIME}.state.context": "get_current_agent_name",
    f"{_HERE}.agents": (
        "Agent DialogAgent MessageDispatcher RecurringReminder Reminder Researcher SupervisedAgent SystemPrompt "
        "WarmupDef make_system_prompt"
    ),
    f"{_RUNTIME}.jobs.job": "Job get_current_agent get_current_job",
    f"{_RUNTIME}.agents.agent": "JobDef JobDefError",
    f"{_RUNTIME}.state.status": "JobStatus",
    f"{_RUNTIME}.state.pyenv": "PyEnv",
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
_NOT_LISTED: Final = (
    "docs_style docstr error_handler find_tools get_all get_any get_statek_settings is_valid_error_handler "
    "tool"
)
"""Names of `statek` that `from statek import *` does not bind."""

_OF_DBZERO: Final[Mapping[str, str]] = {
    "queries": "as_tag exists fetch find index no tags uuid",
    "memo": "enum is_enum is_enum_value is_memo memo",
    "store": "get_current_prefix get_prefix_of immutable set_prefix",
}
_DBZERO: Final[Mapping[str, str]] = {
    **{name: f"{_HERE}.{module}:{name}" for module, names in _OF_DBZERO.items() for name in names.split()},
    "filter": f"{_HERE}.queries:filter_",
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


PACKAGES: Final = ("statek", "dbzero")
ON_DBZERO: Final = "dbzero_modelkit"
"""A package of models that is written in Python on dbzero: as installed it works on the stand-in too."""


class StandInModule(ModuleType):
    """A module whose names are looked up when they are first used; one that it lacks is an ImportError."""

    def __getattr__(self, name: str) -> Any:
        own = vars(self)["__name__"]
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        if f"{own}.{name}" in MODULES:
            return import_module(f"{own}.{name}")
        home = MODULES[own].get(name)
        if home is None:
            raise _missing(own, name)
        module, _, attribute = home.partition(":")
        found = getattr(import_module(module), attribute)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *MODULES[vars(self)["__name__"]]})


def _missing(module: str, name: str) -> ImportError:
    others = elsewhere(module, name)
    if others:
        return ImportError(
            f"cannot import {name!r} from {module!r}: STATEK has it in {', '.join(others)}", name=module
        )
    return NotCovered(f"{module}.{name}")


class StandIns(MetaPathFinder, Loader):
    """Finds the stand-in modules. `installed` and `removed` bound its life."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in; another module of these packages is an error that names it."""
        if fullname == ON_DBZERO and PathFinder.find_spec(fullname, path) is None:
            raise ModuleNotFoundError(
                f"{ON_DBZERO} is not installed: pip install dbzero-modelkit (it works on the reference runtime, and "
                "without dbzero)",
                name=fullname,
            )
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        if fullname not in MODULES:
            raise ModuleNotCovered(fullname)
        is_package = any(other.startswith(f"{fullname}.") for other in MODULES)
        return ModuleSpec(
            fullname, self, origin="the reference runtime of pytest-statek", is_package=is_package
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        return StandInModule(spec.name, "Stands in for STATEK's module of this name: see statek_sim.shim.")

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is, but for what `statek` says of itself: its names come when they are used."""
        if module.__name__ == "statek":
            vars(module).update(
                __version__="1.4.2",
                __all__=sorted(name for name in MODULES["statek"] if name not in _NOT_LISTED.split()),
            )

    def install(self) -> None:
        """Put the stand-ins first; what is installed under these names is not seen until `remove`.

        The real package must not have been imported before: two of them in one process would not know each other.
        """
        for name in PACKAGES:
            module = sys.modules.get(name)
            if module is not None and not isinstance(module, StandInModule):
                place = getattr(module, "__file__", None) or "somewhere"
                raise BadInput(
                    f"{name} was imported from {place} before its stand-in could take its place; run without what "
                    "imports it that early (a plugin of pytest, or `-p`), or choose the installed backend"
                )
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Take the stand-ins away: from now on `import statek` finds what is installed, if anything."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, StandInModule) or name.partition(".")[0] == ON_DBZERO:
                del sys.modules[name]


def shadowed() -> tuple[str, ...]:
    """Return what is installed and not seen while the stand-ins are there, with versions."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return tuple(found)
