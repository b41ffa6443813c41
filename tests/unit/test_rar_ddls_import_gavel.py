"""The importer of gavel traces: small files in both layouts with dirty cells, and the real ones where they are."""

import json
import warnings
from pathlib import Path

import pytest

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.importers.formats import GAVEL
from schedgap.benchmarks.importers.throughputs import read_throughputs
from schedgap.benchmarks.importers.traces import read_trace
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN
from schedgap.benchmarks.instances.rar_ddls.horizons import ample_horizon, certified_horizon
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "gavel"

RATES = {
    "x": {
        "('Net (batch size 8)', 1)": {"null": 10.0, "('Net (batch size 8)', 1)": [4.0, 4.0]},
        "('Net (batch size 8)', 2)": {"null": 20.0},
        "('Net (batch size 8)', 4)": {"null": 30.0},
        "('Fast', 1)": {"null": 5},
        "('Fast', 2)": {"null": 8.0},
        "('Full', 1)": {"null": 0.0},
        "('Alone', 1)": {"null": 3.0},
    },
    "x_unconsolidated": {
        "('Net (batch size 8)', 1)": {"null": 10.0},
        "('Net (batch size 8)', 2)": {"null": 10.0},
        "('Net (batch size 8)', 4)": {"null": 0.0},
        "('Fast', 1)": {"null": 5.0},
        "('Fast', 2)": {"null": 9.0},
    },
}


def ten(job_type: str, steps: object, scale: object, arrival: object = 0) -> str:
    cells = [job_type, "python3 train.py", "folder", "-step", 1, steps, scale, 1, "-1.000000", arrival]
    return "\t".join(map(str, cells))


def seven(job_type: str, steps: object, scale: object, arrival: object = "0.000000") -> str:
    return "\t".join(map(str, [job_type, "cd %s && python3 train.py ", "--n_steps", 1, steps, arrival, scale]))


TRACE = [ten("Alone", 30, 1), ten("Net (batch size 8)", 1200, 2), ten("Fast", 100, 2), ten("Net (batch size 8)", 90, 4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rates.json").write_text(json.dumps(RATES))
    (tmp_path / "some.trace").write_text("\n".join(TRACE) + "\n")
    return tmp_path


def run(folder: Path, trace: str = "some.trace", **settings: object) -> tuple[RarDdlsInstance, list[str]]:
    chosen = {"worker": "x", "slot_length": 10, **settings}
    found, messages = import_instance(RAR_DDLS, "gavel", [folder / trace], folder / "rates.json", chosen)
    assert isinstance(found, RarDdlsInstance)
    said = f"no table of servers: {len(found.servers)} servers of {found.servers[0].gpus} GPUs assumed"
    assert (said in messages) == ("servers" not in settings)
    return found, [message for message in messages if message != said]


def test_sizes_steps_and_times(folder: Path) -> None:
    instance, messages = run(folder)
    assert [(j.id, j.gpus, j.iterations, j.batch_size) for j in instance.jobs] == [
        ("j0", 1, 30, 1),
        ("j1", 2, 1200, 8),
        ("j2", 2, 100, 1),
        ("j3", 4, 90, 8),
    ]
    alone, net, fast, wide = instance.jobs
    assert alone.backward_time == pytest.approx(1 / 30) and alone.gradient_size == 0
    # 1/10 - 1/20 s more when the two workers are apart: m (1/1.25 - 1/62.5) = 0.05.
    assert net.gradient_size == pytest.approx(0.05 / (1 / 1.25 - 1 / 62.5), rel=1e-5)
    assert fast.gradient_size == 0
    assert wide.gradient_size == net.gradient_size
    table = rate_table(instance)
    assert table.rates(1, 1, 1) == pytest.approx(200, abs=1) and table.rates(1, 2, 1) == pytest.approx(100, abs=1)
    assert messages == [
        "Fast on 2 x: unconsolidated is not slower (9 against 8 iterations/s on 2 GPUs), gradient size 0",
        "Net (batch size 8) on 4 x: no unconsolidated rate, gradient size of 2 GPUs taken",
    ]
    assert instance.name == "gavel-some"
    certified = certified_horizon(instance)
    assert certified is not None and instance.horizon == ample_horizon(instance) >= certified


def test_both_layouts_give_the_same_jobs(folder: Path) -> None:
    lines = [seven("Alone", 30, 1), seven("Net (batch size 8)", 1200, 2, "12.500000")]
    (folder / "virtual.trace").write_text("\r\n".join(lines) + "\r\n\r\n")
    instance, messages = run(folder, "virtual.trace")
    first, _ = run(folder, jobs=2, first="trace")
    assert instance.jobs == first.jobs
    assert messages == ["1 of 2 jobs arrive later than 0 s: rar-ddls starts all from slot 1"]
    assert [job.arrival for job in read_trace(GAVEL, [folder / "virtual.trace"]).jobs] == [0.0, 12.5]


def test_limit_keeps_rings_first_in_the_order_of_the_trace(folder: Path) -> None:
    assert [job.id for job in run(folder, jobs=3)[0].jobs] == ["j1", "j2", "j3"]
    assert [job.id for job in run(folder, jobs=3, first="trace")[0].jobs] == ["j0", "j1", "j2"]
    assert run(folder, jobs=3)[0].name == "gavel-some-3"
    assert len(run(folder, jobs=9)[0].jobs) == 4


def test_steps_are_scaled_down_and_rounded_up(folder: Path) -> None:
    assert [job.iterations for job in run(folder, steps_scale="0.1")[0].jobs] == [3, 120, 10, 9]
    assert [job.iterations for job in run(folder, steps_scale=0.001)[0].jobs] == [1, 2, 1, 1]


def test_cluster_and_network_options(folder: Path) -> None:
    assert [server.gpus for server in run(folder)[0].servers] == [4, 4]  # half of the 9 GPUs asked for
    instance, _ = run(folder, servers=5, gpus=2, xi_1=0.5, alpha=1, xi_2=0.01, horizon=77, inter_bandwidth=1)
    assert [server.gpus for server in instance.servers] == [2] * 5
    assert instance.horizon == 77
    network = instance.network
    assert (network.contention_scale, network.contention_penalty) == (0.5, 1)
    assert network.server_overhead == pytest.approx(0.001)
    assert (network.inter_bandwidth, network.intra_bandwidth, instance.reduce_speed) == (10, 625, 5000)


def test_jobs_without_any_rate_are_left_out_and_reported(folder: Path) -> None:
    lines = [ten("Full", 10, 1), ten("Alone", 10, 1), ten("Unheard of", 10, 1), ten("Full", 10, 2)]
    (folder / "some.trace").write_text("\n".join(lines) + "\n")
    instance, messages = run(folder)
    assert [job.id for job in instance.jobs] == ["j1"]
    assert messages == [
        "Full: no rate on x at any scale, left out (2 jobs)",
        "Unheard of: no rate on x at any scale, left out",
    ]
    (folder / "some.trace").write_text(lines[0] + "\n")
    with pytest.raises(InputError, match=r"no job has a rate on x in .*rates\.json"):
        run(folder)


def test_a_scale_that_was_not_measured(folder: Path) -> None:
    (folder / "some.trace").write_text(ten("Alone", 10, 2) + "\n")
    instance, messages = run(folder)
    assert instance.jobs[0].backward_time == pytest.approx(1 / 60, rel=1e-5)
    assert len(messages) == 2 and "that of 1 times 2/1 taken" in messages[0]


def test_a_ring_that_stands_still_when_spread_is_reported(folder: Path) -> None:
    instance, messages = run(folder, jobs=1, slot_length=0.06, servers=2)
    assert rate_table(instance).rates(0, 2, 1) == 0
    assert any("makes no whole iteration in a slot when spread" in message for message in messages)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Alone\tcommand", "line 2: 2 columns separated by tabs, expected 7 or 10"),
        (seven("Alone", 10, 1), "line 2: 7 columns separated by tabs, expected 10 as in the lines before"),
        (ten("", 10, 1), "line 2: column 1 (job type): is empty"),
        (
            ten("Alone", "ten", 1),
            "line 2: column 6 (total steps): must be a whole number from 1 to 1000000000, got 'ten'",
        ),
        (ten("Alone", 0, 1), "line 2: column 6 (total steps): must be a whole number from 1"),
        (ten("Alone", "1.5", 1), "line 2: column 6 (total steps)"),
        (ten("Alone", 10, 0), "line 2: column 7 (scale factor): must be a whole number from 1"),
        (ten("Alone", 10, -4), "line 2: column 7 (scale factor)"),
        (ten("Alone", 10, 1, "nan"), "line 2: column 10 (arrival): must be seconds, at least 0, got 'nan'"),
        (ten("Alone", 10, 1, -1), "line 2: column 10 (arrival)"),
        (
            ten("Alone", 10, 1).replace("-step", "step"),
            "line 2: column 4 (steps argument): must begin with '-', got 'step'",
        ),
        (
            ten("Alone", 10, 1).replace("\t1\t10\t", "\tyes\t10\t"),
            "line 2: column 5 (needs data): must be 0 or 1, got 'yes'",
        ),
    ],
)
def test_bad_lines_are_refused(folder: Path, line: str, message: str) -> None:
    (folder / "some.trace").write_text(TRACE[0] + "\n" + line + "\n")
    with pytest.raises(InputError) as caught:
        run(folder)
    assert str(caught.value).startswith(f"{folder / 'some.trace'}: ")
    assert message in str(caught.value)


def test_seven_columns_in_the_order_of_ten_are_found_out(folder: Path) -> None:
    swapped = seven("Alone", 10, 1).split("\t")
    swapped[5], swapped[6] = "4", "0.000000"
    (folder / "some.trace").write_text("\t".join(swapped))
    with pytest.raises(InputError, match=r"column 7 \(scale factor\)"):
        run(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "rates.json: must be a JSON object, got []"),
        ("{}", "rates.json: no rates"),
        ('{"x": 3}', "rates.json: x: must be a JSON object, got 3"),
        ('{"x": {"Net, 1": {"null": 1}}}', "x: 'Net, 1' is not of the form ('job type', scale)"),
        ('{"x": {"(\'Net\', 0)": {"null": 1}}}', "scale: must be a whole number from 1"),
        ('{"x": {"(\'Net\', 1)": {}}}', "x: ('Net', 1): null: is missing (the rate of the job alone)"),
        ('{"x": {"(\'Net\', 1)": {"null": -1}}}', "null: must be iterations per second, from 0 to 1e12, got -1"),
        ('{"x": {"(\'Net\', 1)": {"null": "1"}}}', "got '1'"),
        ('{"x": {"(\'Net\', 1)": {"null": NaN}}}', "NaN is not allowed"),
        ('{"x": ', "not valid JSON at line 1"),
    ],
)
def test_bad_rates_are_refused(folder: Path, text: str, message: str) -> None:
    (folder / "rates.json").write_text(text)
    with pytest.raises(InputError) as caught:
        run(folder)
    assert message in str(caught.value) and str(folder / "rates.json") in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"worker": "y"}, "no rates of worker type 'y' (worker types: x)"),
        ({"steps_scale": 0}, "option steps_scale: must be greater than 0"),
        ({"steps_scale": 2}, "option steps_scale: must be at most 1"),
        ({"first": "last"}, "option first: must be one of rings, trace"),
        ({"size": 1}, "import gavel: unknown option 'size' (options: jobs, first"),
        ({"servers": 1, "gpus": 3}, "job j3 needs 4 GPUs, 1 servers of 3 have 3"),
        ({"slot_length": 0.01}, "line 1: Alone on 1 GPUs makes no whole iteration in a slot of 0.01 s"),
    ],
)
def test_bad_options_are_refused(folder: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(folder, **settings)
    assert message in str(caught.value)


def test_missing_and_empty_files(folder: Path) -> None:
    with pytest.raises(InputError, match=r"none\.trace: No such file"):
        run(folder, "none.trace")
    (folder / "some.trace").write_text("\n\n")
    with pytest.raises(InputError, match=r"some\.trace: no jobs"):
        run(folder)
    with pytest.raises(InputError, match="takes one trace and perhaps one table of servers, got 3 files"):
        import_instance(RAR_DDLS, "gavel", [folder / "some.trace"] * 3)
    with pytest.raises(InputError, match=r"cannot import format 'nosuch' \(formats: gavel, philly"):
        import_instance(RAR_DDLS, "nosuch", [folder / "some.trace"])


def test_built_in_rates_need_no_file(folder: Path) -> None:
    (folder / "some.trace").write_text(ten("ResNet-18 (batch size 32)", 1000, 2) + "\n")
    instance, messages = import_instance(RAR_DDLS, "gavel", [folder / "some.trace"])
    assert messages == ["no table of servers: 1 servers of 4 GPUs assumed"] and len(instance.to_dict()["jobs"]) == 1


def real(name: str) -> list[Path]:
    """The real files of this name; a warning says so where there are none."""
    found = sorted(REAL.glob(name))
    if not found:
        warnings.warn(f"no {name} in {REAL}: only self-made files are tested", stacklevel=2)
    return found


def test_real_traces_import() -> None:
    sizes = {"small_test": 20, "minimize_makespan": 100, "103959": 986}
    for trace in real("*.trace"):
        for throughputs in (None, REAL / "simulation_throughputs.json"):
            instance, messages = import_instance(RAR_DDLS, "gavel", [trace], throughputs)
            assert isinstance(instance, RarDdlsInstance)
            assert len(instance.jobs) == sizes[trace.stem]
            assert [job.gpus for job in read_trace(GAVEL, [trace]).jobs] == [job.gpus for job in instance.jobs]
            assert any("not slower" in message for message in messages) == (trace.stem != "small_test")


def test_built_in_rates_are_those_of_the_file_they_cite() -> None:
    for path in real("simulation_throughputs.json"):
        rates = read_throughputs(path).rates
        assert set(rates) == set(BUILT_IN.rates)
        for key, rate in rates.items():
            pairs = [(rate.consolidated, BUILT_IN.rates[key].consolidated)]
            pairs.append((rate.unconsolidated, BUILT_IN.rates[key].unconsolidated))
            for exact, rounded in pairs:
                assert (exact is None) == (rounded is None)
                assert exact is None or rounded == pytest.approx(exact, rel=1e-3)


def test_how_many_cells_are_dirty() -> None:
    """The number that GAVEL.md tells."""
    both = [rate for (_, _, scale), rate in BUILT_IN.rates.items() if scale > 1 and rate.unconsolidated is not None]
    dirty = [rate for rate in both if (rate.unconsolidated or 0) >= (rate.consolidated or 0)]
    page = (Path(__file__).parents[2] / "benchmarks" / "instances" / "rar_ddls" / "GAVEL.md").read_text()
    assert f"({len(dirty)} of the {len(both)} cells with both rates" in page
