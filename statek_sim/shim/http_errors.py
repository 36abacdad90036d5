"""The exceptions of STATEK's HTTP client: what handlers of an application are given when a provider fails."""

from __future__ import annotations

from statek_sim.errors import ProviderFailure, ProviderHTTPError, ProviderTimeout, ProviderUnreachable


def client_error(error: BaseException) -> BaseException:
    """Return httpx's exception in the place of ours; any other error, and ours without httpx, is returned as it is."""
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
