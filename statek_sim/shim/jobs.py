"""Jobs and job definitions for applications, including members of STATEK's classes that the runtime does not need.

The module also implements `statek.model_pricing`, `statek.locale`, post-processors, and the HTTP client's
exceptions, which STATEK passes to error handlers if a provider fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import FunctionType
from typing import Any, Final, TypeVar

from statek_sim.errors import ProviderFailure, ProviderHTTPError, ProviderTimeout, ProviderUnreachable
from statek_sim.runtime.agents.agent import JobDef, JobDefError
from statek_sim.runtime.agents.dialog import (
    DialogItem,
    chat_responses,
    count_llm_actions,
    dialog_of,
)
from statek_sim.runtime.agents.history import language_texts
from statek_sim.runtime.execution.job_registry import copies_are_equal
from statek_sim.runtime.execution.model_name import (
    model_for_provider,
    model_provider,
    models_by_difficulty,
    parse_model_name,
)
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.execution.services import Brought
from statek_sim.runtime.execution.toolbox import matching
from statek_sim.runtime.jobs import post_processing as runtime
from statek_sim.runtime.jobs import subtask
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.lifecycle import DIALOG_STYLES
from statek_sim.runtime.jobs.post_processing import LLM_StepData, identity, is_final
from statek_sim.runtime.jobs.subtask import SubTaskHandler, find_handler
from statek_sim.runtime.state import futures, pyenv, status
from statek_sim.runtime.state.access import (
    FULL,
    attribute,
    current_access,
    missing,
    nothing_to_delete,
    stored_member,
)
from statek_sim.runtime.state.chat_log import NotificationLogItem, job_members
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.ordering import Shows
from statek_sim.runtime.stored.storable_types import KEEPER, EnumValue, object_text
from statek_sim.shim import job_times, request_data
from statek_sim.shim.chat_history import ChatHistoryItem, chat_history
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.difficulty import TaskDifficulty
from statek_sim.shim.internal_attrs import (
    HERE_ONLY,
    NOT_COVERED,
    check_reader,
    dataclass_there,
    is_read_by_agents,
    read_by_agents,
)
from statek_sim.shim.memo import InMemory, enum, memo, read_attribute
from statek_sim.shim.queries import as_tag, find, tags
from statek_sim.shim.shared_context import ContextCategoryDict, init_shared_context
from statek_sim.shim.store import open_store
from statek_sim.shim.tools import registered

T = TypeVar("T")

ErrorKind, JobStatus, SubTaskState = (
    enum(kind.__name__, [*kind.__members__])
    for kind in (pyenv.ErrorKind, status.JobStatus, subtask.SubTaskState)
)


def _refuse(kind: str, name: str, owner: object) -> Any:
    if name in NOT_COVERED[kind]:
        raise NotCovered(f"{kind}.{name}")
    raise missing(owner, name)


def _set_member(self: object, name: str, value: Any) -> None:
    """Set an attribute; the store refuses a value for an attribute that the class does not have."""
    is_added = not hasattr(type(self), name)
    object.__setattr__(self, name, attribute(value).value if is_added else value)


def _delete_member(self: object, name: str) -> None:
    try:
        object.__delattr__(self, name)
    except AttributeError:
        raise nothing_to_delete(name, known=False) from None


def _in_place_of(base: type) -> Callable[[type[T]], type[T]]:
    """Return a decorator for a class that replaces a STATEK class, so that agents see only STATEK's members.

    `base` is the runtime's class.
    """

    def decorate(given: type[T]) -> type[T]:
        kind: Any = dataclass_there(given)  # its methods are replaced
        kind.__name__ = kind.__qualname__ = base.__name__
        read: Any = base.__getattribute__

        def get(self: Any, name: str) -> Any:
            return read_by_agents(self, base, name) if is_read_by_agents() else read(self, name)

        kind.__getattribute__ = get
        kind.__getattr__ = lambda self, name: _refuse(base.__name__, name, self)
        kind.__setattr__, kind.__delattr__ = _set_member, _delete_member
        return given

    return decorate


@_in_place_of(PyEnv)
class AppPyEnv(PyEnv):
    """A job's workspace, with STATEK's members."""


@_in_place_of(LLM_Usage)
class AppUsage(LLM_Usage):
    """A job's usage, with its cost at the application's prices."""

    pricing: ModelPricing

    @property
    def total_cost(self) -> float | None:
        """Return the cost at the prices for the job's model, else the cost reported by the provider, else None."""
        return self.pricing.cost_of(self)


@_in_place_of(JobDef)
class AppJobDef(JobDef):
    """A job definition with STATEK's interface for model and style."""

    def __eq__(self, other: object) -> bool:
        """Compare like STATEK: by stored values, where two mappings or lists containing strings are never equal."""
        if self is other or not isinstance(other, AppJobDef):
            return self is other
        return len(self.blocks) < 2 and not self.job_params and self._identity() == other._identity()

    __hash__ = object.__hash__

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # STATEK has None if there are no parameters.
        params: Any = self.job_params or None
        self.job_params = params
        store = open_store()
        if store is not None:
            store.tag(store.add(self), {as_tag(self.agent)})

    def _identity(self) -> tuple[object, ...]:
        calls = all(copies_are_equal(call) for block in self.blocks for call in block.tool_calls)
        warmup = self.blocks if calls else id(self)
        processors = [identity(processor) for processor in self.processors]
        return (
            id(self.agent),
            self.metadata,
            self.job_params,
            warmup,
            self._chat_style,
            self.locale,
            processors,
        )

    def get_errors(self) -> Iterator[JobDefError]:  # type: ignore[override]  # STATEK's is a generator
        """Yield the recorded startup failures, in store order."""
        yield from super().get_errors()

    @property
    def chat_style(self) -> Any:
        """The style of its jobs: the definition's, or else the one from the settings."""
        return _runtime().host.default_chat_style if self._chat_style is None else self._chat_style

    @chat_style.setter
    def chat_style(self, style: Any) -> None:
        self._chat_style = style

    @property
    def model(self) -> str | None:
        """The model, or the models by difficulty, from the metadata."""
        models = models_by_difficulty(self.metadata["MODEL"])
        if len(set(models.values())) == 1:
            return next(iter(models.values()))
        return ",".join(f"{level[0].upper()}:{model}" for level, model in models.items())

    @property
    def model_family(self) -> str | None:
        """The part of the model name between provider and model."""
        name = (self.model or "").split("[")[0].split("/")
        return None if len(name) < 2 else name[len(name) > 2]

    @property
    def provider(self) -> str | None:
        """The provider: from the model name, the metadata, or the settings."""
        from_name = model_provider(self.model or "")
        return from_name or self.metadata.get("PROVIDER") or _runtime().settings.default_llm_api_provider

    def set_chat_style(self, chat_style: Any) -> None:
        """Set the style for the definition and all its jobs; None removes it."""
        self.chat_style = chat_style
        for job in _runtime().jobs:
            if job.job_def is self:
                job.chat_style = self.chat_style


class AppJob(Job):
    """A job with STATEK's interface for applications. Applications and agent code may add members to it."""

    __str__ = object_text
    member: Any = staticmethod(stored_member)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.py_env = AppPyEnv(stores=self.py_env.stores)
        self.usage = AppUsage()
        self.usage.pricing = self._pricing()

    def _pricing(self) -> ModelPricing:
        name = self.get_current_model()
        default = self.job_def.metadata.get("PROVIDER") or _runtime().settings.default_llm_api_provider
        provider = model_provider(name) or default
        family = parse_model_name(name).model_family if provider.upper() == "OPENROUTER" else None
        found: ModelPricing = get_model_pricing(provider, model_for_provider(name, provider), family)
        return found

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register a cleanup handler that runs if the job dies; the store refuses a handler that cannot be imported."""
        _ = error_handler.__name__  # STATEK's store reads the handler
        attribute(error_handler)
        super().add_error_handler(error_handler, context)

    def bind_critical_error_context(self, context: object) -> None:
        """Register the agent's `critical_error_handler` for `context`, replacing the handler for the previous input."""
        self.error_handlers.bind_latest_input(self.agent.get_adapter("critical_error_handler"), context)

    def notify_handlers(self, error: BaseException | None = None) -> None:
        """Run every registered handler; a provider's error is passed as the HTTP client's exception."""
        super().notify_handlers(error if error is None else client_error(error))

    # -- its parts ---------------------------------------------------------------------------------------------

    @property
    def job_status(self) -> Any:
        """The status."""
        return self.status

    def set_status(self, new_status: Any) -> None:
        """Set the status; every change is allowed."""
        target = status.JobStatus[str(new_status)]
        reason = "final" if self.exit is None else "exit"
        self.life.stop_reason = reason if target is status.JobStatus.DONE else None
        self.life.set(target)

    def has_more_warmup_blocks(self) -> bool:
        """Return whether blocks of warmup code follow the current one."""
        return (self.warmup_block_num or 0) < len(self.job_def.blocks) - 1

    @property
    def last_chat_log_item(self) -> Any:
        """The newest item of the chat log, or None."""
        return self.job_log.last

    @property
    def logs_path(self) -> str | None:
        """The folder for logs in the settings; the reference runtime writes none."""
        path: str | None = _runtime().settings.logs_path
        return path

    @property
    def model(self) -> Any:
        """The definition's model."""
        definition: Any = self.job_def
        return definition.model

    @property
    def model_family(self) -> Any:
        """The definition's model family."""
        definition: Any = self.job_def
        return definition.model_family

    def get_current_difficulty(self) -> EnumValue:
        """Return the difficulty."""
        value: EnumValue = TaskDifficulty[self.difficulty.lower()]
        return value

    def get_current_model(self, difficulty: Any = None) -> str:
        """Return the model for a difficulty, by default the current one."""
        text = self.job_def.metadata["MODEL"]
        if ":" not in text:
            return text
        models = {TaskDifficulty[level.lower()]: model for level, model in models_by_difficulty(text).items()}
        return models[self.get_current_difficulty() if difficulty is None else difficulty]

    # -- its history -------------------------------------------------------------------------------------------

    def get_chat_history(self) -> Iterator[ChatHistoryItem]:  # type: ignore[override]  # items instead of messages
        """Yield the conversation without the system prompt and chat-style markup."""
        return chat_history(self)

    def get_dialog(self) -> Iterator[DialogItem]:
        """Yield the messages between user and agent."""
        return dialog_of(self)

    def get_chat_responses(self) -> Iterator[str]:
        """Yield the agent's messages to its user."""
        return chat_responses(self)

    def count_llm_actions(self) -> int:
        """Return the number of actions the model has taken."""
        return count_llm_actions(self)

    def is_step_final(self, llm_step: LLM_StepData) -> bool:
        """Return whether storing a reply would end the job."""
        if self.chat_style not in DIALOG_STYLES:
            return False
        return is_final(self.chat_style, llm_step.text, calls=bool(llm_step.call_requests))

    get_next_request = request_data.get_next_request
    get_request_data = request_data.get_request_data
    get_response_times = job_times.get_response_times
    get_llm_response_times = job_times.get_llm_response_times
    get_llm_initial_step_size = job_times.get_llm_initial_step_size
    get_llm_step_sizes = job_times.get_llm_step_sizes
    tokens_per_sec = job_times.tokens_per_sec

    def iter_notification_log_items(self) -> Iterator[tuple[str, NotificationLogItem]]:
        """Yield the delivered notifications, each preceded by the id of the call that shows it to the model."""
        for index, item in enumerate(self.chat_log):
            if isinstance(item, NotificationLogItem):
                yield f"STATEK-NOTIFICATION-{index:03d}", item

    # -- its variables -----------------------------------------------------------------------------------------

    def find_locals(
        self,
        var_type: type | None = None,
        var_name: str | None = None,
        ext_scan: bool = True,
    ) -> Iterator[Any]:
        """Yield workspace variables by type or name, then those stored with `perm_ctx_set`."""
        env: Any = self.py_env
        return matching(dict(env.local_state), var_type, var_name, env.perm_ctx if ext_scan else None)

    def find_sub_task_handler(self, id: Any = None) -> SubTaskHandler | None:  # noqa: A002  # STATEK's own name
        """Return the handler of a completed subtask, the newest if no id is given."""
        return find_handler(self, id)

    def __store_members__(self, shows: Shows) -> dict[str, object]:  # type: ignore[override]  # a method of its own
        """Return the members displayed to agents, and those added to it.

        Reading a member that another job has but this one lacks raises an error.
        """
        for job in _runtime().jobs:
            for name in vars(job):
                if shows(name) and name not in vars(self):
                    raise missing(self, name)
        return job_members(self, shows, vars(self))

    def __setattr__(self, name: str, value: Any) -> None:
        is_stored = is_read_by_agents() or not hasattr(type(self), name)
        found = attribute(value) if is_stored else None
        super().__setattr__(name, value if found is None else found.value)
        if found is not None and found.error is not None:
            raise found.error

    __delattr__ = _delete_member

    def __repr__(self) -> str:
        # Agent code sees dbzero's message.
        return (
            super().__repr__() if current_access() == FULL else "<statek.executors.job.Job object at 0x...>"
        )

    def __getattribute__(self, name: str) -> Any:
        if name in NOT_COVERED["Job"]:
            raise NotCovered(f"Job.{name}")
        if is_read_by_agents():
            return read_by_agents(self, Job, name)
        if name in HERE_ONLY["Job"]:
            check_reader(self, name)
        return super().__getattribute__(name)


def _runtime() -> Any:
    return current_runtime()


setattr(AppJobDef, KEEPER, InMemory())

# Agents and error messages show the names of the classes.
AppJob.__name__, AppJob.__qualname__ = "statek.executors.job.Job", "Job"
for _kind in (AppPyEnv, AppUsage, AppJobDef, AppJob):
    for _method in vars(_kind).values():
        if isinstance(_method, FunctionType):
            _method.__qualname__ = f"{_kind.__qualname__}.{_method.__name__}"


def _tools() -> tuple[Any, ...]:
    return (init_shared_context, *registered())


BROUGHT: Final = Brought(registered=_tools, job=AppJob, job_def=AppJobDef, categories=ContextCategoryDict)
"""An application's tools and classes for its runtime."""


@memo
class FutureResult(futures.FutureResult):
    """A value that will be available later. Its dependencies are unknown here, so its condition is polled."""

    __getattribute__ = read_attribute

    def __init__(self, deps: object, state_num: int) -> None:
        super().__init__(None, state_num)
        self.deps = deps

    @property
    def stored_deps(self) -> object:
        """All objects."""
        return self.deps


@memo
class PostProcessor(runtime.PostProcessor):
    """Inspects each reply of a job before it is stored; subclasses define `process`."""


@memo
@dataclass(eq=False)
class FinalCheck(runtime.FinalCheck, PostProcessor):
    """Lets the model reconsider an early final answer."""

    max_llm_actions: int = 3


def client_error(error: BaseException) -> BaseException:
    """Return the httpx exception for a provider failure.

    Any other error is returned unchanged, as are all errors if httpx is not installed.
    """
    if not isinstance(error, ProviderFailure):
        return error
    try:
        import httpx  # noqa: PLC0415  # an optional package, needed when a provider fails
    except ImportError:
        return error
    request = httpx.Request("POST", "https://llm.invalid/v1/chat/completions")
    match error:
        case ProviderHTTPError(status=status):
            response = httpx.Response(status, request=request)
            return httpx.HTTPStatusError(str(error), request=request, response=response)
        case ProviderTimeout():
            return httpx.ReadTimeout(str(error), request=request)
        case ProviderUnreachable():
            return httpx.ConnectError(str(error), request=request)
    return error


_MILLION = Decimal(1_000_000)


@memo
@dataclass(eq=False)
class ModelPricing:
    """Prices per million tokens: uncached input, cached input, and output."""

    input_price_per_M: Decimal | None = None  # noqa: N815  # STATEK's own names
    input_price_per_cached_M: Decimal | None = None  # noqa: N815
    output_price_per_M: Decimal | None = None  # noqa: N815

    @property
    def is_valid(self) -> bool:
        """Whether the two prices needed to compute a cost are set."""
        return self.input_price_per_M is not None and self.output_price_per_M is not None

    def cost_of(self, usage: Any) -> float | None:
        """Return the cost of token usage; without prices or tokens, the cost reported by the provider (behaviour 5)."""
        plain, written = self.input_price_per_M, self.output_price_per_M
        if plain is None or written is None or usage.total_input_tokens + usage.total_output_tokens <= 0:
            reported: float | None = usage.total_reported_cost
            return reported
        cached = plain if self.input_price_per_cached_M is None else self.input_price_per_cached_M
        fresh = usage.total_input_tokens - usage.total_cached_tokens
        read = Decimal(fresh) * plain + Decimal(usage.total_cached_tokens) * cached
        return float((read + Decimal(usage.total_output_tokens) * written) / _MILLION)


def get_model_pricing(
    provider: str,
    model: str,
    model_family: str | None = None,
    no_create: bool = False,
) -> Any:
    """Return a model's prices. If there are none, create an empty entry or, with `no_create`, return None."""
    known = next(iter(find(ModelPricing, *_model_tags(provider, model, model_family))), None)
    return known if known is not None or no_create else _tagged(ModelPricing(), provider, model, model_family)


def set_model_pricing(
    provider: str,
    model: str,
    input_price_per_M: Decimal,  # noqa: N803  # STATEK's own names
    output_price_per_M: Decimal,  # noqa: N803
    input_price_per_cached_M: Decimal | None = None,  # noqa: N803
    model_family: str | None = None,
) -> ModelPricing:
    """Set a model's prices. If the model already has different prices, create a second entry, as STATEK does."""
    wanted = (input_price_per_M, input_price_per_cached_M, output_price_per_M)
    known: ModelPricing | None = get_model_pricing(provider, model, model_family, no_create=True)
    if known is not None:
        if not known.is_valid:
            known.input_price_per_M, known.input_price_per_cached_M, known.output_price_per_M = wanted
        if (known.input_price_per_M, known.input_price_per_cached_M, known.output_price_per_M) == wanted:
            return known
    return _tagged(ModelPricing(*wanted), provider, model, model_family)


def _tagged(pricing: ModelPricing, provider: str, model: str, family: str | None) -> ModelPricing:
    tags(pricing).add(*_model_tags(provider, model, family), "USAGE")
    return pricing


def _model_tags(provider: str, model: str, family: str | None) -> list[str]:
    return ["".join(part.split()).upper() for part in (provider, model, family) if part is not None]


_LANGUAGES: Final = (
    "AR BG CS DA DE EL EN ES ET FI FR HE HI HR HU IT JA KO LT LV NL NO PL PT RO RU SK SL SR SV TH TR UK VI ZH"
)
_COUNTRIES: Final = (
    "AE AR AT AU BE BG BR CA CH CL CN CO CZ DE DK EE EG ES FI FR GB GR HR HU ID IE IL IN IT JP "
    "KR LT LV MX MY NL NO NZ PH PL PT RO RS RU SA SE SG SI SK TH TR UA US VN ZA"
)
StatekLangCode: Final = enum("StatekLangCode", _LANGUAGES.split())
StatekCountryCode: Final = enum("StatekCountryCode", _COUNTRIES.split())


@memo
@dataclass
class StatekLocale:
    """A language and a country."""

    lang_code: Any
    country_code: Any


_MADE: dict[tuple[int, str], StatekLocale] = {}


def resolve_locale(locale_str: str) -> StatekLocale:
    """Return the locale for a string such as `PL-PL`; within a test, this is always the same object."""
    key = (id(open_store()), locale_str.upper())
    if key not in _MADE:
        language, country = key[1].split("-", 1)
        _MADE[key] = StatekLocale(StatekLangCode[language], StatekCountryCode[country])
    return _MADE[key]


def get_language_rule(lang_code: Any) -> str | None:
    """Return the text to add to the system prompt for a language, or None, as for most languages."""
    return language_texts()["rules"].get(str(lang_code))


def get_language_hint(lang_code: Any) -> str | None:
    """Return the text to add to a user message for a language, or None, as for most languages."""
    return language_texts()["hints"].get(str(lang_code))
