"""schemathesis, which makes requests out of the server's own document of its routes: right ones and wrong ones."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance


def test_what_the_document_says_of_requests_and_answers_is_so(url: str) -> None:
    document = schemathesis.openapi.from_url(f"{url}/openapi.json")
    wrong = []
    for operation in (found.ok() for found in document.get_all_operations()):
        # What has no body and no words in its path can be asked in one way.
        modes = GenerationMode if operation.body else [GenerationMode.POSITIVE]
        for mode in modes:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=10, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            def check(case: schemathesis.Case) -> None:
                # A document of the routes cannot say which prompts and how many words a model has.
                case.call_and_validate(excluded_checks=[positive_data_acceptance])

            try:
                check()
            except (Exception, BaseExceptionGroup) as error:
                wrong.append(f"{operation.label}, {mode}: {error}")
    assert not wrong, "\n\n".join(wrong)
