"""schemathesis, which makes requests out of the server's own document of its routes: right ones and wrong ones."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.schemas import OpenApiSchema


@pytest.fixture(scope="session")
def document(url: str) -> OpenApiSchema:
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_document_allows_is_answered_and_what_it_does_not_is_refused(case: schemathesis.Case) -> None:
    case.call_and_validate()
