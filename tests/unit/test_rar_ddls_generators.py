"""Generators of rar-ddls: determinism, ranges, feasibility within the horizon, refusals."""

import inspect
from collections import Counter

import pytest
from support.checks import rar_ddls as check

from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN, Rate, Throughputs, batch_size
from schedgap.benchmarks.instances.rar_ddls.horizons import certified_horizon
from schedgap.benchmarks.instances.rar_ddls.measured import Setup, measured_job
from schedgap.benchmarks.instances.rar_ddls.random import PAPER_MIX
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

PRESETS = [preset.id for preset in workload_of(RAR_DDLS).presets]
FAST = [name for name in PRESETS if name != "large"]
SETUP = Setup()


def make(preset: str, seed: int = 0, **settings: object) -> RarDdlsInstance:
    found = make_instance(RAR_DDLS, preset, seed, settings)
    assert isinstance(found, RarDdlsInstance)
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_same_seed_same_instance_other_seed_another(preset: str) -> None:
    first = make(preset, 5)
    assert make(preset, 5) == first
    assert make(preset, 6).content_hash() != first.content_hash()
    assert RarDdlsInstance.parse(first.to_dict()) == first


@pytest.mark.parametrize("preset", workload_of(RAR_DDLS).presets, ids=lambda preset: preset.id)
def test_options_are_the_functions_keywords_with_their_defaults(preset) -> None:  # type: ignore[no-untyped-def]
    functions = (preset.generator, *getattr(preset.generator, "passes_on_to", ()))
    keywords = [one for function in functions for one in inspect.signature(function).parameters.values()]
    assert {name: o.default for name, o in preset.options.items()} == {
        one.name: one.default for one in keywords if one.kind is one.KEYWORD_ONLY
    }


@pytest.mark.parametrize("preset", FAST)
def test_feasible_within_the_horizon(preset: str) -> None:
    for seed in range(3 if preset == "paper" else 60):
        instance = make(preset, seed)
        certified = certified_horizon(instance)
        assert certified is not None and certified <= instance.horizon


def test_tiny_is_tiny() -> None:
    for seed in range(100):
        instance = make("tiny", seed)
        assert 3 <= len(instance.jobs) <= 4 and 2 <= len(instance.servers) <= 3
        assert max(job.gpus for job in instance.jobs) <= 4


def test_contended_forces_rings_to_cross_and_some_to_slow_down() -> None:
    slowed = 0
    for seed in range(60):
        instance = make("contended", seed)
        assert [server.gpus for server in instance.servers] == [2, 2, 2]
        rings = [j for j, job in enumerate(instance.jobs) if job.gpus == 3]
        assert len(rings) >= 2
        table = rate_table(instance)
        slowed += any(table.rates(j, 2, 2) < table.rates(j, 2, 1) for j in rings)
    assert slowed >= 50


def test_paper_workload_is_that_of_section_7() -> None:
    instance = make("paper", 3)
    assert Counter(job.gpus for job in instance.jobs) == Counter(PAPER_MIX)
    assert PAPER_MIX == {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
    assert len(instance.servers) == 20 and {server.gpus for server in instance.servers} <= {4, 8, 16, 32}
    assert instance.horizon == 1200
    assert all(1000 <= job.iterations <= 6000 for job in instance.jobs)
    assert instance.network.contention_scale != instance.network.server_overhead
    table = rate_table(instance)
    for j, job in enumerate(instance.jobs):
        alone, contended = int(table.rates(j, 1, 1)), int(table.rates(j, 2, 4)) if job.gpus > 1 else None
        assert 19 <= alone <= 100  # tau from 0.01 to just under 0.05 slots
        assert contended is None or 19 <= contended <= alone


def test_paper_settings_reach_the_instance() -> None:
    instance = make("paper", 1, servers="10", horizon="1500", xi_1="0.25", xi_2="0.001", alpha="0")
    assert (len(instance.servers), instance.horizon) == (10, 1500)
    assert instance.network.contention_scale == 0.25
    assert instance.network.server_overhead == 0.001
    assert instance.network.contention_penalty == 0
    assert sum(s.gpus for s in make("paper", 1, servers=1).servers) == 32  # the largest job has to fit


def test_large_has_the_stated_size() -> None:
    instance = make("large", 1)
    assert len(instance.jobs) == 10_000 and instance.total_gpus == 10_000
    assert Counter(job.gpus for job in instance.jobs) == {1: 5000, 2: 875, 4: 1625, 8: 1875, 16: 500, 32: 125}


def test_small_rests_on_measured_rates() -> None:
    measured = set()
    for worker in BUILT_IN.worker_types:
        for job_type in BUILT_IN.job_types(worker):
            for scale in (1, 2, 4):
                found = measured_job(BUILT_IN, worker, job_type, scale, SETUP)
                if found is not None:
                    measured.add((scale, found[0]["backward_time"], found[0]["gradient_size"]))
    for seed in range(10):
        for job in make("small", seed).jobs:
            assert (job.gpus, job.backward_time, job.gradient_size) in measured


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("nothing", {}, "unknown preset 'nothing' (presets: tiny, contended"),
        ("tiny", {"colour": "red"}, "unknown option 'colour'"),
        ("tiny", {"jobs": "0"}, "option jobs: must be at least 1, got '0'"),
        ("tiny", {"jobs": "many"}, "option jobs: must be int, got 'many'"),
        ("tiny", {"jobs": 2.0}, "option jobs: must be int, got 2.0"),
        ("contended", {"servers": 1}, "option servers: must be at least 2"),
        ("paper", {"xi_1": "nan"}, "option xi_1: must be finite, got 'nan'"),
        ("paper", {"xi_1": "1.5"}, "option xi_1: must be at most 1"),
        ("paper", {"extra": "inf"}, "option extra: must be finite"),
        ("large", {"gpus": 31}, "option gpus: must be at least 32"),
        ("small", {"worker": "a100"}, "no rates of worker type 'a100' (worker types: v100, p100, k80)"),
        ("small", {"intra_bandwidth": 1, "inter_bandwidth": 1}, "intra_bandwidth: must be more than inter_bandwidth"),
    ],
)
def test_bad_settings_are_refused(preset: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make(preset, 0, **settings)
    assert message in str(caught.value)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed"):
        make("tiny", -1)


def two_rings(horizon: int = 100) -> RarDdlsInstance:
    job = {"gpus": 3, "gradient_size": 0.0, "batch_size": 1, "forward_time": 0.0, "backward_time": 0.5}
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": horizon,
            "network": Setup(slot_length=1, inter_bandwidth=1, intra_bandwidth=50, alpha=0).network(),
            "reduce_speed": 1000.0,
            "servers": [{"id": f"s{k}", "gpus": 2} for k in range(3)],
            "jobs": [{"id": "a", "iterations": 8, **job}, {"id": "b", "iterations": 6, **job}],
        }
    )


def test_certified_horizon_never_lets_two_rings_meet() -> None:
    # 2 iterations a slot: 4 and 3 slots, one after the other since both would cross the middle server.
    assert certified_horizon(two_rings()) == 7
    report = check(
        two_rings(7),
        {"start": {"a": 1, "b": 5}, "placement": {"a": {"s0": 2, "s1": 1}, "b": {"s0": 2, "s1": 1}}},
    )
    assert report.feasible and report.objective == 7


def test_certified_horizon_of_a_job_that_cannot_run() -> None:
    data = two_rings().to_dict()
    data["jobs"][0]["gpus"] = 7
    assert certified_horizon(RarDdlsInstance.parse(data)) is None
    data["jobs"][0].update(gpus=3, backward_time=1.5)
    assert certified_horizon(RarDdlsInstance.parse(data)) is None


def test_measured_jobs_reproduce_both_measurements() -> None:
    for worker in ("v100", "p100"):
        for job_type in BUILT_IN.job_types(worker):
            for scale in (2, 4, 8):
                rate = BUILT_IN.rate(worker, job_type, scale)
                if not rate.consolidated or not rate.unconsolidated:
                    continue
                found = measured_job(BUILT_IN, worker, job_type, scale, SETUP)
                assert found is not None
                fields, messages = found
                instance = RarDdlsInstance.parse(
                    {
                        "problem": "rar-ddls",
                        "horizon": 10,
                        "network": SETUP.network(),
                        "reduce_speed": SETUP.reduce_speed * SETUP.slot_length,
                        "servers": [{"id": f"s{k}", "gpus": 8} for k in range(8)],
                        "jobs": [{"id": "j", "iterations": 1, **fields}],
                    }
                )
                table = rate_table(instance)
                per_slot = rate.consolidated * SETUP.slot_length
                assert int(table.rates(0, 1, 1)) == pytest.approx(per_slot, rel=1e-4, abs=1)
                slower = min(rate.unconsolidated, rate.consolidated)
                assert int(table.rates(0, scale, 1)) == pytest.approx(slower * SETUP.slot_length, rel=1e-4, abs=1)
                assert bool(messages) == (rate.unconsolidated >= rate.consolidated)


def test_overhead_takes_its_share_of_the_measured_slowdown() -> None:
    without = measured_job(BUILT_IN, "v100", "LM (batch size 80)", 4, SETUP)
    with_overhead = measured_job(BUILT_IN, "v100", "LM (batch size 80)", 4, Setup(xi_2=0.001))
    assert without is not None and with_overhead is not None
    assert 0 < with_overhead[0]["gradient_size"] < without[0]["gradient_size"]


def test_rules_for_cells_that_cannot_be_used() -> None:
    table = Throughputs(
        "a table",
        {
            ("x", "A (batch size 8)", 1): Rate(10.0, 10.0),
            ("x", "A (batch size 8)", 2): Rate(20.0, 10.0),
            ("x", "A (batch size 8)", 4): Rate(40.0, None),
            ("x", "A (batch size 8)", 8): Rate(0.0, 0.0),
            ("x", "B", 1): Rate(5.0, 5.0),
            ("x", "B", 2): Rate(8.0, 9.0),
            ("x", "C", 1): Rate(5.0, 5.0),
            ("x", "D", 2): Rate(0.0, 1.0),
        },
    )
    at_two = measured_job(table, "x", "A (batch size 8)", 2, SETUP)
    at_four = measured_job(table, "x", "A (batch size 8)", 4, SETUP)
    at_eight = measured_job(table, "x", "A (batch size 8)", 8, SETUP)
    assert at_two is not None and at_four is not None and at_eight is not None
    assert at_two[1] == [] and at_two[0]["batch_size"] == 8
    assert at_four[1] == ["A (batch size 8) on 4 x: no unconsolidated rate, gradient size of 2 GPUs taken"]
    assert at_four[0]["gradient_size"] == at_two[0]["gradient_size"]
    assert at_eight[1] == ["A (batch size 8) on 8 x: consolidated rate is 0, that of 4 times 8/4 taken"]
    faster = measured_job(table, "x", "B", 2, SETUP)
    assert faster is not None and faster[0]["gradient_size"] == 0 and "not slower (9 against 8" in faster[1][0]
    assert faster[0]["batch_size"] == 1
    absent = measured_job(table, "x", "C", 4, SETUP)
    assert absent is not None and absent[0]["backward_time"] == pytest.approx(1 / 20 / 60, rel=1e-5)
    assert [text.partition(": ")[2] for text in absent[1]] == [
        "consolidated rate not measured, that of 1 times 4/1 taken",
        "no unconsolidated rate at any scale, gradient size 0",
    ]
    assert measured_job(table, "x", "D", 2, SETUP) is None
    assert measured_job(table, "x", "E", 1, SETUP) is None


def test_a_measurement_that_eq_8_cannot_explain_is_refused() -> None:
    slow_inside = Setup(intra_bandwidth=2.0)
    with pytest.raises(InputError, match="raise intra_bandwidth"):
        measured_job(BUILT_IN, "v100", "LM (batch size 5)", 8, slow_inside)


def test_batch_sizes_are_read_from_the_job_type() -> None:
    assert batch_size("ResNet-50 (batch size 64)") == 64
    assert batch_size("CycleGAN") is None
