"""Error texts of failed statuses, as httpx 0.28.1 prints them."""

from __future__ import annotations

from statek_sim.providers.http_provider import http_error_text
from tests.tables import table_test


@table_test(
    ("status", "first_line"),
    [
        (400, "Client error '400 Bad Request'"),
        (413, "Client error '413 Request Entity Too Large'"),
        (422, "Client error '422 Unprocessable Entity'"),
        (429, "Client error '429 Too Many Requests'"),
        (499, "Client error '499 '"),
        (500, "Server error '500 Internal Server Error'"),
        (529, "Server error '529 '"),
    ],
)
def test_the_text_names_the_status_as_httpx_does(status: int, first_line: str) -> None:
    assert http_error_text(status) == (
        f"{first_line} for url 'https://llm.invalid/v1/chat/completions'\n"
        f"For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/{status}"
    )


def test_a_redirect_is_not_followed_and_told_with_where_it_points() -> None:
    assert http_error_text(302, "http://old/v1", location="http://new/v1") == (
        "Redirect response '302 Found' for url 'http://old/v1'\nRedirect location: 'http://new/v1'\n"
        "For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/302"
    )
    assert "location" not in http_error_text(304, "http://old/v1", location="http://new/v1")


def test_the_text_names_the_url_it_is_given() -> None:
    assert "for url 'http://localhost:8080/v1'" in http_error_text(503, "http://localhost:8080/v1")
