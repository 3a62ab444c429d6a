"""What `openapi.json` says is what the server does: asked all that schemathesis makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis.generation import GenerationMode
from support.asking import Asked
from support.workplace import Workplace, bare, sample

from anchord.app.face.openapi import openapi
from anchord.app.face.site import Site
from anchord.core.number import pith_suffix

DIGEST = bytes(range(32))
PATHS = sorted(json.loads(openapi(Site()))["paths"])
DEAR = ("certificate.pdf",)
"""Made at some cost: asked for a few times only."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    place = Workplace(tmp_path_factory.mktemp("place"))
    place.anchor(sample(1), bare(DIGEST, "a file"))
    place.add(sample(2))
    with Asked(place.config) as asked:
        yield asked


@pytest.fixture(scope="module")
def api(asked: Asked) -> Any:
    names = {
        "suffix": pith_suffix(sample(1).digest),
        "digest": DIGEST.hex(),
        "key_id": asked.readers.keyring().active().key_id,
    }
    config = schemathesis.Config.from_dict({"parameters": names})
    return schemathesis.openapi.from_asgi("/openapi.json", asked.application, config=config)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_one_that_is_told(
    asked: Asked, api: Any, path: str, mode: GenerationMode
) -> None:
    operation = api[path]["GET"]
    if mode is GenerationMode.NEGATIVE and not operation.query:
        return  # paths that are nobody's have tests of their own

    @settings(
        max_examples=2 if path.endswith(DEAR) else 20, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        answer = case.call(allow_redirects=False)
        sent = parse_qs(urlsplit(answer.request.url).query, keep_blank_values=True)
        # A value that is an empty list is a fault in the case, but nothing of it is in the request.
        assume(set(case.query or ()) <= set(sent))
        case.validate_response(answer)

    check()
