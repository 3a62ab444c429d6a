"""One look for all duties: only what is due becomes a task, and at times everything does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.fleet import Worker, eventually
from support.parties import FakeClock, make_parts
from support.passes import bare
from support.workplace import run

from anchord.adapters.signers import file
from anchord.app.config import load
from anchord.app.fleet import sessions
from anchord.app.fleet.duties import LOOK, STORING, duties, names
from anchord.app.fleet.looking import Looking
from anchord.app.fleet.queue import make_queue, task_name
from anchord.app.fleet.work import Work
from anchord.app.wiring import open_app
from anchord.engine import due
from anchord.engine.stages import STAGES
from anchord.errors import ConfigError, NetworkError

ALL = tuple(duty.name for duty in duties())


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    parts = make_parts(tmp_path)
    yield SimpleNamespace(parts=parts, app=SimpleNamespace(store=parts.store))
    parts.store.close()


def test_only_what_is_due_is_asked_for_after_a_first_look_that_asks_for_all(session: Any) -> None:
    clock, monotonic = FakeClock(), FakeClock(0)
    looking = Looking(monotonic.now)

    def looked(stage: str | None = None) -> tuple[str, ...]:
        if stage is not None:
            next(one for one in STAGES if one.name == stage).work(session.parts, clock.now())
        return looking(session, clock.now())

    assert looked() == ALL
    assert looked() == ()
    session.parts.store.add(bare(2), clock.now())
    assert looked() == ("seal",)
    assert looked("seal") == ("submit",)
    assert looked("submit") == ("sign",)
    assert looked("sign") == ()
    clock.advance(60)
    assert looked() == ("upgrade",)
    assert looked("upgrade") == ()
    monotonic.advance(int(due.AT_LEAST_EVERY_S))
    assert (looked(), looked()) == (ALL, ())
    assert Looking()(session, clock.now()) == ALL, "as after a reload, at another place"


def test_a_moment_is_known_for_every_duty_that_is_looked_for(session: Any) -> None:
    assert tuple(due.moments(session.parts, session.app.store.counts, 0)) == ALL


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    assert run("init", str(tmp_path)).exit_code == 0
    ended: list[object] = []
    made = Work(load(str(tmp_path / "anchord.toml")), lambda: ended.append(1))
    yield made
    made.close()
    assert not ended


@pytest.mark.parametrize("error", [NetworkError("away"), ConfigError("set it right")])
def test_a_look_that_fails_finds_nothing_and_ends_nothing(work: Work, error: Exception) -> None:
    def failing(_session: Any, _now: int) -> tuple[str, ...]:
        raise error

    assert work.look(failing) == ()  # type: ignore[arg-type]
    assert work.ended_by is None
    for guard in work._guards.values():
        guard.resume()
    assert work.look(Looking()) == ALL


def test_connections_are_kept_from_duty_to_duty_and_given_back_when_idle(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = Looking()
    work.look(looking)
    work.look(looking)
    [(session, _)] = work._sessions._idle
    pool = session.app.store._engine.pool
    work.rest()
    assert pool.checkedin() > 0  # type: ignore[attr-defined]
    monkeypatch.setattr(sessions, "KEPT_S", -1.0)
    work.rest()
    assert session.app.store._engine.pool.checkedin() == 0  # type: ignore[attr-defined]
    work.look(looking)
    assert [kept for kept, _ in work._sessions._idle] == [session]


def test_processes_that_sign_serve_one_duty_after_another_and_go_when_idle(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    with work._sessions.lend() as session:
        signer = session.parts.signer
        signer.sign_many([bytes(32)] * file._WORTH_A_PROCESS)  # type: ignore[attr-defined]
        kept = list(signer._workers)  # type: ignore[attr-defined]
        assert kept
    work.rest()
    assert signer._workers == kept  # type: ignore[attr-defined]
    monkeypatch.setattr(sessions, "KEPT_S", -1.0)
    work.rest()
    assert not signer._workers  # type: ignore[attr-defined]
    assert all(one._process.poll() is not None for one in kept)


def test_a_duty_that_is_paused_here_is_asked_for_until_it_goes_on(work: Work) -> None:
    def failing() -> None:
        raise ConfigError("the key is locked")

    looking = Looking()
    work.look(looking)
    assert work.look(looking) == ()
    work._guards["sign"]("sign", failing)
    assert work.look(looking) == ("sign",)


def test_nothing_comes_by_itself_but_looks_and_shifts(work: Work) -> None:
    with ThreadPoolExecutor(1) as threads:
        queue = make_queue("postgresql://somebody@127.0.0.1/store", work, threads)
    periodic = {task.task.name for task in queue.periodic_registry.periodic_tasks.values()}
    assert periodic == {task_name(LOOK), task_name(STORING)}
    assert LOOK not in names()


def test_a_worker_for_one_duty_looks_for_it_and_an_idle_one_runs_no_stage(
    config: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"

    def quiet() -> bool:
        """Tell whether no stage begins while several looks pass."""
        before = journal.read_text("utf-8").count("begin")
        time.sleep(3)
        return journal.read_text("utf-8").count("begin") == before

    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(Worker(config, journal, "--queue", "seal"))
        worker.until("started")
        with open_app(str(config)) as app:
            for n in range(2):
                app.store.add(bare(1, f"record {n}"), int(time.time()))
                eventually(lambda: app.store.records.waiting()[0] == 0)
        eventually(quiet)
        assert worker.stopped() == 0
