"""One store with one of everything, asked in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.asking import Asked
from support.face_places import FacePlace


@pytest.fixture(scope="session")
def face(tmp_path_factory: pytest.TempPathFactory) -> FacePlace:
    return FacePlace(tmp_path_factory.mktemp("face"))


@pytest.fixture(scope="session")
def asked(face: FacePlace) -> Iterator[Asked]:
    with Asked(face.place.config) as asked:
        yield asked
