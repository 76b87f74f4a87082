"""Answers of the routes, read by the tests: one page, its rows, every page of a search."""

from typing import Any

from flask.testing import FlaskClient


def get(client: FlaskClient, path: str, **given: object) -> Any:
    """The JSON of GET path with these parameters."""
    response = client.get(path, query_string=given)
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()


def rows_of(page: Any) -> list[Any]:
    """The rows of a page, also of one that has them by kind."""
    found = page["results"]
    return found if isinstance(found, list) else [row for part in found.values() for row in part]


def refs_of(page: Any) -> list[str]:
    """The refs of the rows of a page, in their order."""
    return [row["ref"] for row in rows_of(page)]


def matches_of(page: Any) -> list[str]:
    """The refs of all matches that stand in the rows of a page, twins too."""
    return [ref for row in rows_of(page) for ref in (row["ref"], *row.get("twins", ()))]


def every_page(client: FlaskClient, path: str, **given: object) -> list[Any]:
    """Every page, from the first to the one without a next."""
    pages, offset = [], 0
    while offset is not None:
        pages.append(get(client, path, **given, offset=offset))
        following = pages[-1]["next_offset"]
        assert following is None or following > offset, "a page leads back"
        offset = following
    return pages
