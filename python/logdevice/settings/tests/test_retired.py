"""What was once a setting is one today, or its name is answered wherever settings are given by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from logdevice.client import Client, ClientConfig
from logdevice.errors import InvalidSettingError
from logdevice.log_attributes import ATTRIBUTES
from logdevice.node.config import COMPONENTS as OF_NODES
from logdevice.node.config import config_from
from logdevice.node.main import parsed
from logdevice.settings.declarations import declared
from logdevice.settings.retired import RETIRED
from pyspark_logdevice.options.read import OPTIONS
from pyspark_logdevice.options.write import WRITE_OPTIONS
from tools.docs.pages import COMPONENTS

# All that were public in November 2026, before their number was reduced. Only to be added to.
_ONCE_PUBLIC = """
    window_lsns window_slide_share window_bytes gap_grace_ms gap_grace_limit started_timeout_ms
    stall_grace_ms reconnect_delay_ms_min reconnect_delay_ms_max redelivery_delay_ms_min
    redelivery_delay_ms_max metadata_retry_ms_min metadata_retry_ms_max rewind_delay_ms_min
    rewind_delay_ms_max rewind_delay_decay scd_timeout_ms all_send_all_timeout_ms slow_node_detection
    slow_node_floor_ms slow_node_average_ms slow_node_margin slow_node_margin_decay_per_s
    slow_node_probation_ms_min slow_node_probation_ms_max slow_node_probation_decay skip_partially_trimmed
    read_bytes_max read_time_ms_max send_queue_bytes_max sqlite_busy_timeout_ms zookeeper_timeout_ms
    zookeeper_session_timeout_ms batch_codec batch_zstd_level batch_entries_max batch_bytes_max
    batch_raw_bytes_max message_bytes_max connect_timeout_ms keepalive_interval_ms keepalive_timeout_ms
    data_local body_bytes_max window_records_max window_bytes_max store_timeout_ms_min store_timeout_ms_max
    immediate_waves_max leader_retries_max sticky_bytes_max sticky_ms_max slow_store_penalty_ms
    slow_nodes_share_max overloaded_penalty_ms no_space_penalty_ms rebuilding_penalty_ms
    unreachable_penalty_ms activation_timeout_ms activation_pause_ms_min activation_pause_ms_max
    tail_wait_ms draining_timeout_ms release_interval_ms release_repeat_ms writers_max writer_window_max
    writers_keep_ms writers_keep_records clock_ahead_ms_max clock_places_max barriers_max barrier_timeout_ms
    chain_look_ms chain_fill_ms chain_answer_ms chain_attempts_max chain_suspicion_ms chain_regrow_ms
    retry_ms_min retry_ms_max digest_grace_ms digest_bytes_max drops_waiting_max mutations_max
    recovery_timeout_ms state_flush_ms segment_bytes preallocate_bytes free_bytes_floor compact_live_share
    punch_stretch_bytes open_segments_max index_memory_bytes index_cache_bytes chain_store_timeout_ms
    append_timeout_ms call_timeout_ms attempt_timeout_ms resend_timeout_ms retry_pause_ms_min
    retry_pause_ms_max barrier_attempts_max redirects_max answers_grace_ms cluster_refresh_ms
    outbox_bytes_max keep_freed_memory logs_window_bytes cuts_expected_max delivery_bytes delivery_entries
    writer_batch_bytes writer_batch_entries writer_delay_ms writer_memory_bytes_max writer_window
    writer_pause_ms_max writer_stall_timeout_ms writer_journal_sync undo_bytes_max writer_in_flight_max
    cuts_max ping_interval_ms pings_missed_max pings_refused_max peer_timeout_ms peer_queue_bytes_max
    disk_queue_bytes_max commit_group_bytes_max disk_read_threads read_streams_max configuration_poll_ms
    activation_check_ms retention_interval_ms compaction_interval_ms compaction_share compaction_keys_max
    reclaim_interval_ms shutdown_timeout_ms data_port metrics_port rebuild_grace_ms
    rebuild_nodes_percent_max auto_unrecoverable_ms rebuild_bytes_per_s_max rebuild_busy_percent_max
    rebuild_yield_bytes_per_s rebuild_chunk_bytes rebuild_chunks_max rebuild_logs_max rebuild_retry_ms
    rebuild_attempts_max
"""
ONCE_PUBLIC = set(re.findall(r"\w+", _ONCE_PUBLIC))
TODAY = {name for component in COMPONENTS for name in declared(component)}
NODE: dict[str, Any] = {
    "cluster": "ads",
    "node": 3,
    "address": "n3:7040",
    "data_directory": "/data",
    "epoch_store": "sqlite:/metadata.db",
}


def test_what_was_once_a_setting_is_one_or_is_answered() -> None:
    assert len(ONCE_PUBLIC) == 153
    assert TODAY | set(RETIRED) >= ONCE_PUBLIC
    assert not TODAY & set(RETIRED)


def answered(name: str) -> pytest.RaisesExc[InvalidSettingError]:
    return pytest.raises(InvalidSettingError, match=f"^{name} is no longer a setting: ")


def test_a_flag_is_answered() -> None:
    for name in RETIRED:
        flag = f"--{name.replace('_', '-')}"
        for words in ([flag, "5"], [f"{flag}=5"]):
            with answered(name):
                parsed(["--config", "node.toml", *words])


def test_a_name_in_the_file_of_a_node_is_answered_in_every_group() -> None:
    for name in RETIRED:
        for group in OF_NODES:
            with answered(name):
                config_from({**NODE, "settings": {group: {name: 5}}}, {})


def test_a_name_among_the_settings_of_a_client_is_answered() -> None:
    for name in RETIRED:
        with answered(name):
            ClientConfig.of("a:1", cluster=None, location="", settings={name: 5})


def test_a_name_among_the_settings_of_one_reader_or_writer_is_answered() -> None:
    client = Client(ClientConfig(endpoints=("a:1",)))
    for name in RETIRED:
        given: dict[str, Any] = {name: 5}
        with answered(name):
            client.read("/log", **given)
        with answered(name):
            client.writer("/log", **given)
    client.close()


def test_settings_are_no_options_of_spark() -> None:
    """Spark never took settings of a client by name, so no old name has to be answered there."""
    assert not ({*OPTIONS, *WRITE_OPTIONS} & (ONCE_PUBLIC | TODAY))


def test_an_answer_is_short_and_names_only_what_there_is() -> None:
    for answer in RETIRED.values():
        assert len(answer) < 120
        assert not answer.endswith(".")
        assert set(re.findall(r"[a-z]+(?:_[a-z]+)+", answer)) <= TODAY | set(ATTRIBUTES), answer


def test_a_flag_that_never_was_is_refused_like_any_wrong_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(["--config", "node.toml", "--no-such-flag"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --no-such-flag" in capsys.readouterr().err
