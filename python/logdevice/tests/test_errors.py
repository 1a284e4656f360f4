"""Every error has a stable code, a place in the tree of errors and advice, and can be pickled."""

from __future__ import annotations

import pickle

import pytest

import logdevice
from logdevice.errors import (
    DataError,
    DataLossError,
    ErrorCode,
    InvalidArgumentError,
    LogDeviceError,
    OutcomeUnknownError,
    UnavailableError,
    UsageError,
    kinds,
)
from logdevice.types import LogId, Lsn, NodeId

ALL = list(kinds())


def test_every_code_belongs_to_exactly_one_error() -> None:
    assert sorted(error.code for error in ALL) == sorted(ErrorCode)


# Every older process would misread a changed number: add numbers, never change one.
def test_codes_never_change() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        "UNKNOWN": 0,
        "USAGE": 100,
        "INVALID_SETTING": 101,
        "INVALID_ARGUMENT": 102,
        "OUT_OF_RANGE": 103,
        "PAYLOAD_TOO_LARGE": 104,
        "UNKNOWN_LOG": 105,
        "ACCESS": 106,
        "WRONG_CLUSTER": 107,
        "CONFLICT": 108,
        "NAME_TAKEN": 109,
        "INVALID_OPTION": 110,
        "WRITER_FENCED": 111,
        "WRITER_OUT_OF_ORDER": 112,
        "REPLAY_DIFFERS": 113,
        "CLOCK_AHEAD": 114,
        "UNAVAILABLE": 200,
        "NO_SEQUENCER": 201,
        "NOT_ENOUGH_NODES": 202,
        "OVERLOADED": 203,
        "NO_SPACE": 204,
        "METADATA_UNAVAILABLE": 205,
        "OUTCOME_UNKNOWN": 300,
        "METADATA_OUTCOME_UNKNOWN": 301,
        "UNKNOWN_WRITER": 302,
        "DATA": 400,
        "TRIMMED": 401,
        "DATA_LOSS": 402,
        "CORRUPT_RECORD": 403,
        "UNREADABLE_METADATA": 404,
        "PROTOCOL": 500,
        "LOCAL_PROTOCOL": 501,
        "REMOTE_PROTOCOL": 502,
        "CHECKPOINT": 600,
        "LOG_REMOVED": 601,
        "CHECKPOINT_TRIMMED": 602,
        "CHECKPOINT_AHEAD": 603,
        "CHECKPOINT_CLUSTER": 604,
        "CHECKPOINT_FORMAT": 605,
        "ROLLBACK": 606,
        "REBUILD": 607,
    }


@pytest.mark.parametrize("error", ALL[1:])
def test_the_hundreds_of_a_code_name_the_branch(error: type[LogDeviceError]) -> None:
    branch = error.__mro__[error.__mro__.index(LogDeviceError) - 1]
    assert issubclass(branch, LogDeviceError)
    assert branch.code == error.code // 100 * 100


@pytest.mark.parametrize("error", ALL)
def test_an_error_is_retriable_only_if_nothing_was_changed(error: type[LogDeviceError]) -> None:
    assert error.retriable == issubclass(error, UnavailableError)


def test_an_unknown_outcome_is_neither_a_failure_nor_retriable() -> None:
    assert not issubclass(OutcomeUnknownError, UnavailableError | DataError | UsageError)


@pytest.mark.parametrize("error", ALL)
def test_every_error_says_what_happened_and_what_to_do(error: type[LogDeviceError]) -> None:
    assert error.__doc__
    advice = f" {error.advice}" if error.shows_advice else ""
    assert str(error("the disk is on fire")) == f"the disk is on fire.{advice}"
    assert error.advice.endswith(".")


def test_a_message_about_an_argument_gets_no_advice_because_it_says_what_is_allowed() -> None:
    assert str(InvalidArgumentError("count must be at least 1, got 0")) == "count must be at least 1, got 0."


def test_an_error_says_where_it_happened() -> None:
    error = DataLossError("no copy is left", log=LogId(7), lsn=Lsn.of(2, 5), node=NodeId(3))
    assert str(error).startswith("no copy is left (log 7, lsn e2n5, node N3). ")


@pytest.mark.parametrize("error", ALL)
def test_an_error_can_be_pickled_for_another_process(error: type[LogDeviceError]) -> None:
    original = error("gone", log=LogId(7), lsn=Lsn(5), node=NodeId(3))
    copy = pickle.loads(pickle.dumps(original))
    assert type(copy) is error
    assert (str(copy), copy.log, copy.lsn, copy.node) == (str(original), 7, 5, 3)


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_a_public_name(error: type[LogDeviceError]) -> None:
    assert getattr(logdevice, error.__name__) is error
    assert error.__name__ in logdevice.__all__
