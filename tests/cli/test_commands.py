"""Every command, as the README tells it."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from pathlib import Path

import pytest

import dpmarkov as dpm

from .conftest import STATES, TARGET, TRIPS, script

EDGES = [(a, b) for a in STATES for b in STATES]


@pytest.fixture
def published(events, tmp_path):
    """Publish the trips."""
    counts = dpm.count_transitions(events, origin="from", destination="to", states=STATES)
    dpm.release(counts, epsilon=1, delta=1e-6, unit="transition").save(tmp_path / "out.json")
    return tmp_path / "out.json"


# -- each as a process of its own ----------------------------------------------------------------


def test_demo_goes_the_whole_way(process, tmp_path):
    done = process("demo", "--folder", "city", "--zones", 12, "--trips", 50_000)
    assert done.code == 0, done.err
    for word in ("12 zones, 50,000 trips", "hides whether any single transition", "Busiest states",
                 "actual", "--mechanism geometric", "dpmarkov show"):  # fmt: skip
        assert word in done.out
    assert done.err == ""
    names = {path.name for path in (tmp_path / "city").iterdir()}
    assert names >= {"trips.parquet", "zones.txt", "adjacency.csv", "release.json"}
    shown = process("show", tmp_path / "city" / "release.json")
    assert shown.code == 0
    assert "Busiest states" in shown.out


def test_plan_release_show_and_simulate_by_the_installed_script(process, events, tmp_path):
    program = script()
    planned = process("plan", *TRIPS, *TARGET, "--expected-total", 20_000, program=program)
    assert planned.code == 0, planned.err
    assert "Feasible: yes" in planned.out
    assert "trips.csv was not opened" in planned.out
    made = process("release", *TRIPS, *TARGET, "-o", "out.json", program=program)
    assert made.code == 0, made.err
    assert "Advice: --mechanism geometric" in made.out
    events.unlink()  # from here on the public file is all there is
    shown = process("show", "out.json", "--top", 2, program=program)
    assert shown.code == 0, shown.err
    assert "mixing time" in shown.out
    walked = process("simulate", "out.json", "--walkers", 5, "--steps", 3, "-o", "w.csv")
    assert walked.code == 0, walked.err
    with (tmp_path / "w.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert {row["state"] for row in rows} <= set(STATES)


def test_compare_as_a_process(process, events):
    done = process("compare", "--states", "states.txt", "--expected-total", 20_000, "--draws", 5,
                   *TARGET)  # fmt: skip
    assert done.code == 0, done.err
    assert "Most accurate: row TV: geometric" in done.out


def test_json_is_all_that_is_printed(process, here, events, published):
    by_process = process("show", published, "--json")
    assert json.loads(by_process.out)["guarantee"]["unit"] == "transition"
    commands = [
        ("plan", "--states", "states.txt", "--expected-total", 9e4, *TARGET),
        ("release", *TRIPS, *TARGET, "-o", "new.parquet"),
        ("show", published),
        ("simulate", published, "--walkers", 2, "--steps", 2, "-o", "w.parquet"),
        ("compare", *TRIPS, *TARGET, "--draws", 3),
        ("demo", "--folder", "d", "--zones", 5, "--trips", 9000),
    ]
    for command in commands:
        done = here(*command, "--json")
        assert done.code == 0, done.err
        assert isinstance(json.loads(done.out), dict), command[0]
        assert done.err == ""


def test_help_has_an_example_for_every_command(process):
    whole = process("--help")
    assert whole.code == 0
    assert "2 for what you can mend" in " ".join(whole.out.split())
    for command in ("demo", "plan", "release", "show", "report", "simulate", "compare"):
        assert command in whole.out
        done = process(command, "--help", env={"PATH": "", "TERM": "dumb", "COLUMNS": "200"})
        assert done.code == 0
        assert f"dpmarkov {command} " in done.out.split("Example:")[1]
        assert "--json" in done.out


def test_every_example_of_the_help_can_be_pasted(process, tmp_path):
    assert process("demo", "--folder", "small", "--zones", 9, "--trips", 30_000).code == 0
    shell = {"PATH": f"{Path(script()[0]).parent}:/usr/bin:/bin"}
    for command in ("demo", "plan", "release", "show", "report", "simulate", "compare"):
        wide = {**os.environ, "TERM": "dumb", "COLUMNS": "200"}
        told = process(command, "--help", env=wide).out.split("Example:")[1]
        example = "\n".join(line.strip() for line in told.splitlines())
        assert example.strip().startswith(f"dpmarkov {command}")
        done = process("-c", f"cd small && {example.strip()}", program=("bash",),
                       env={**os.environ, **shell})  # fmt: skip
        assert done.code == 0, done.err


def test_help_and_the_version_import_nothing_heavy(process):
    for argument in ("--help", "--version"):
        done = process("-X", "importtime", "-m", "dpmarkov", argument, program=(sys.executable,))
        loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.err.splitlines()}
        assert "typer" in loaded
        assert not loaded & {"numpy", "scipy", "pyarrow", "duckdb", "narwhals", "flint"}
    assert dpm.__version__ in done.out


def test_one_thread_of_openblas_is_enough_unless_told_otherwise(process):
    code = (
        "import os, sys\nfrom dpmarkov.cli import main\nsys.argv = ['dpmarkov', '--version']\n"
        "try: main()\nexcept SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    free = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    for told, threads in ((free, "1"), ({**free, "OPENBLAS_NUM_THREADS": "3"}, "3")):
        done = process("-c", code, program=(sys.executable,), env=told)
        assert done.out.split()[-1] == threads


def test_completion_is_there(process):
    done = process(env={"_DPMARKOV_COMPLETE": "complete_bash", "COMP_WORDS": "dpmarkov rel",
                        "COMP_CWORD": "1", "PATH": ""}, program=script())  # fmt: skip
    assert done.out.split() == ["release"]


# -- options, in this process --------------------------------------------------------------------


def test_a_release_is_what_was_asked_for(here, events, tmp_path):
    done = here("release", *TRIPS, *TARGET, "--mechanism", "gaussian", "-o", "out.parquet")
    assert done.code == 0, done.err
    made = dpm.load(tmp_path / "out.parquet")
    assert made.mechanism == "gaussian"
    assert made.guarantee.epsilon == 1
    assert made.space.labels == tuple(STATES)


def test_settings_of_the_dirichlet_mechanism_arrive(here, events, tmp_path):
    done = here("release", *TRIPS, *TARGET, "--prior", 64, "--no-debias", "-o", "a.json", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["mechanism"]["prior"], told["mechanism"]["debiased"]) == (64, False)
    floor = ("--unit", "destination", "--assume-floor", 0.2, "-o", "b.json")
    done = here("release", *TRIPS, "--epsilon", 1, "--delta", 1e-6, *floor)
    assert done.code == 0, done.err
    assert "The curator asserts this" in " ".join(done.out.split())


def test_counted_data_paths_and_categories_are_released(here, tmp_path):
    (tmp_path / "counted.csv").write_text("a,b,n\nx,y,900\ny,x,800\nx,x,700\ny,y,600\n")
    done = here("release", "counted.csv", "--origin", "a", "--destination", "b", "--count", "n",
                "--states", "x,y", *TARGET, "-o", "counted.json")  # fmt: skip
    assert done.code == 0, done.err
    assert dpm.load(tmp_path / "counted.json").private_counts.sum() > 2500
    lines = [f"{bike},{hour},{(bike + hour) % 3}" for bike in range(99) for hour in range(50)]
    (tmp_path / "paths.csv").write_text("bike,hour,at\n" + "\n".join(lines))
    done = here("release", "paths.csv", "--entity", "bike", "--time", "hour", "--state", "at",
                "--states", "0..2", *TARGET, "-o", "paths.json")  # fmt: skip
    assert done.code == 0, done.err
    assert dpm.load(tmp_path / "paths.json").space.labels == (0, 1, 2)
    (tmp_path / "grades.csv").write_text("grade\n" + "A\nB\nB\nF\n" * 500)
    grades = ("grades.csv", "--category", "grade", "--categories", "A,B,F")
    done = here("release", *grades, *TARGET, "-o", "grades.json")
    assert done.code == 0, done.err
    done = here("show", "grades.json")
    assert "Commonest categories" in done.out
    assert "expected_error" in json.loads(here("show", "grades.json", "--json").out)


def test_paths_take_a_tie_break_a_longest_gap_and_drop_stays(here, tmp_path):
    day = ((1, 1, "b"), (1, 0, "a"), (2, 0, "b"), (5, 0, "c"))
    lines = [
        f"{rider},2025-01-0{date} 0{hour}:00:00,{turn},{state}"
        for rider in range(40) for date in (1, 2) for hour, turn, state in day
    ]  # fmt: skip
    (tmp_path / "rides.csv").write_text("rider,time,turn,at\n" + "\n".join(lines))
    path = ("rides.csv", "--entity", "rider", "--time", "time", "--state", "at",
            "--states", "a,b,c", *TARGET, "--mechanism", "geometric", "--tie-break", "turn",
            "--force", "-o", "rides.json")  # fmt: skip

    def noisy(*more):
        done = here("release", *path, *more)
        assert done.code == 0, done.err
        return dpm.load(tmp_path / "rides.json").private_counts.reshape(3, 3)

    # Each day goes a, b (by the turn), b, three hours of nothing, c; then the night.
    whole = [[0, 80, 0], [0, 80, 80], [40, 0, 0]]
    kept = [[0, 80, 0], [0, 0, 0], [0, 0, 0]]
    # Noise of epsilon 1 exceeds 39 with a probability below 2 e^-39 a cell.
    assert abs(noisy() - whole).max() < 40
    assert abs(noisy("--max-gap", "2h", "--drop-self") - kept).max() < 40
    for gap in ("7200s", "120min", "0.1d"):
        assert noisy("--max-gap", gap)[1, 2] < 40 < noisy("--max-gap", gap)[1, 1]


def test_states_are_chosen_from_a_column_of_a_table(here, tmp_path):
    (tmp_path / "zones.csv").write_text(
        "id,city\n1,old\n2,new\n3,old\n4,old\n5,old\n"
    )  # zone 4 is an island
    (tmp_path / "trips.csv").write_text("a,b\n" + "1,3\n3,5\n5,1\n2,1\n4,4\n" * 300)
    chosen = ("--states", "zones.csv", "--state-column", "id", "--state-where", "city=old",
              "--state-except", "4")  # fmt: skip
    done = here("release", "trips.csv", "--origin", "a", "--destination", "b", *chosen, *TARGET,
                "--invalid", "drop", "-o", "out.json")  # fmt: skip
    assert done.code == 0, done.err
    assert dpm.load(tmp_path / "out.json").space.labels == (1, 3, 5)


def test_undeclared_states_go_where_they_are_told(here, events, tmp_path):
    few = ("trips.csv", "--origin", "from", "--destination", "to", "--states", "north,east,rest")
    done = here("release", *few, *TARGET, "--invalid", "other", "--other", "rest", "-o", "o.json")
    assert done.code == 0, done.err
    assert dpm.load(tmp_path / "o.json").chain.stationary_distribution()[2] > 0.4


def test_states_are_merged_before_the_release(here, events, tmp_path):
    (tmp_path / "ring.csv").write_text("a,b\nnorth,east\neast,south\nsouth,west\nwest,north\n")
    done = here("release", *TRIPS, *TARGET, "--merge", "ring.csv", "--merge-to", 2, "-o", "m.json")
    assert done.code == 0, done.err
    made = dpm.load(tmp_path / "m.json")
    assert len(made.space.labels) == 2
    assert made.guarantee.spent_epsilon == 0.1
    target = ("--epsilon", 1, "--delta", 1e-6, "--unit", "destination")
    done = here("release", *TRIPS, *target, "--merge", "ring.csv", "--merge-to", 3, "-o", "d.json")
    assert done.code == 0, done.err
    done = here("release", *TRIPS, *TARGET, "--merge-to", 3, "-o", "n.json")
    assert done.code == 2
    assert "--merge ADJACENCY" in done.message


def test_states_from_the_data_are_not_private_and_say_so(here, events):
    some = ("trips.csv", "--origin", "from", "--destination", "to", "--states", "from-data")
    done = here("release", *some, *TARGET, "-o", "out.json")
    assert done.code == 0, done.err
    assert "NOT PRIVATE" in done.out
    assert here("plan", *some, *TARGET).code == 2


def test_a_support_is_declared(here, events, tmp_path):
    edges = [f"{a},{b}" for a, b in EDGES if (a, b) != ("north", "south")]
    (tmp_path / "support.csv").write_text("a,b\n" + "\n".join(edges))
    done = here("release", *TRIPS, "--support", "support.csv", "--invalid", "drop", *TARGET,
                "-o", "s.json")  # fmt: skip
    assert done.code == 0, done.err
    assert dpm.load(tmp_path / "s.json").space.n_cells == 15


def test_a_plan_opens_the_data_only_when_told_to(here, events, tmp_path):
    target = ("--epsilon", 1, "--delta", 1e-6, "--unit", "destination")
    told = json.loads(here("plan", *TRIPS, *target, "--with-public-row-totals", "--json").out)
    assert "row totals" in told["assumptions"][0]
    assert told["prediction"]["mean_cell"] == 20_000 / 16
    done = here("plan", *TRIPS, *TARGET, "--with-public-row-totals")
    assert done.code == 2
    assert "private" in done.message
    done = here("plan", "trips.csv", "--states", "trips.csv", "--state-column", "from", *target)
    assert done.code == 2
    assert "the data itself" in done.message
    events.write_bytes(b"\x00 cannot be read")
    assert here("plan", *TRIPS, *target).code == 0


def test_a_list_of_states_may_be_longer_than_a_name_of_a_file(here):
    states = ",".join(f"zone-{i}" for i in range(999))
    done = here("plan", "--states", states, *TARGET, "--mechanism", "geometric")
    assert done.code == 0, done.message[:200]
    assert "999 states" in done.out


def test_a_plan_takes_public_totals_and_a_public_chain(here, events, published, tmp_path):
    (tmp_path / "totals.csv").write_text(
        "state,total\n" + "\n".join(f"{name},{9000 * (1 + i)}" for i, name in enumerate(STATES))
    )
    public = ("--row-totals", "totals.csv", "--like", published)
    told = json.loads(here("plan", "--states", "states.txt", *public, *TARGET, "--json").out)
    assert told["prediction"]["mean_cell"] == 90_000 / 16
    assert "rows are those of the public matrix" in told["assumptions"]
    done = here("compare", "--states", "states.txt", *public, *TARGET, "--draws", 3, "--seed", 1)
    assert done.code == 0, done.err
    done = here("plan", "--states", "a,b", "--like", published, *TARGET)
    assert "other states" in done.message


def test_an_infeasible_plan_ends_with_2_and_says_what_would_do(here, events):
    done = here("plan", "--states", "states.txt", "--prior", 3, "--expected-total", 9e4, *TARGET)
    assert done.code == 2
    assert "Feasible: NO" in done.out
    assert "--prior" in done.out
    done = here("plan", "--states", "states.txt", "--prior", 3, *TARGET, "--json")
    assert done.code == 2
    assert json.loads(done.out)["feasible"] is False


def test_a_seed_repeats_a_simulation_and_never_a_release(here, events, published, tmp_path):
    walk = ("simulate", published, "--walkers", 50, "--steps", 9, "--seed", 3)
    for name in ("a.parquet", "b.parquet"):
        assert here(*walk, "-o", name).code == 0
    a, b = ((tmp_path / name).read_bytes() for name in ("a.parquet", "b.parquet"))
    assert a == b
    assert "--seed" not in here("release", "--help").out


def test_walks_begin_where_they_are_told(here, published, tmp_path):
    done = here("simulate", published, "--walkers", 9, "--steps", 0, "--start", "west",
                "-o", "w.csv")  # fmt: skip
    assert done.code == 0, done.err
    with (tmp_path / "w.csv").open() as file:
        assert {row["state"] for row in csv.DictReader(file)} == {"west"}
    done = here("simulate", published, "--walkers", 9, "--steps", 1, "--start", "up", "-o", "v.csv")
    assert done.code == 2
    assert "'up'" in done.message


def test_a_long_simulation_is_written_in_parts(here, published, tmp_path, monkeypatch):
    from dpmarkov.cli import simulate

    monkeypatch.setattr(simulate, "_ROWS_AT_ONCE", 30)
    assert here("simulate", published, "--walkers", 25, "--steps", 9, "-o", "w.csv").code == 0
    with (tmp_path / "w.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["walker"]) for row in rows] == [w for w in range(25) for _ in range(10)]


def test_the_real_city_is_released_from_the_lookup_of_its_zones(process, real_data, tmp_path):
    states = ("--states", real_data / "taxi_zone_lookup.csv", "--state-column", "LocationID",
              "--state-where", "Borough=Manhattan",
              "--state-except", "103,104,105,153,194,202")  # fmt: skip
    done = process("release", real_data / "nyc_yellow_360k.parquet", "--origin", "PULocationID",
                   "--destination", "DOLocationID", *states, "--invalid", "drop", *TARGET,
                   "-o", "nyc.json")  # fmt: skip
    assert done.code == 0, done.err
    made = dpm.load(tmp_path / "nyc.json")
    assert made.space.shape == (63, 63)
    pi = dict(zip(made.space.labels, made.chain.stationary_distribution(), strict=True))
    assert max(pi, key=pi.get) in {236, 237}  # the Upper East Side


def test_a_terminal_gets_drawn_tables_and_progress(here, tmp_path, monkeypatch):
    demo = ("demo", "--zones", 5, "--trips", 9000, "--folder")
    plain = here(*demo, "plain")
    assert "─" not in plain.out
    assert plain.err == ""
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    drawn = here(*demo, "drawn")
    assert drawn.code == 0, drawn.err
    assert "─" in drawn.out
    for word in ("How far off:", "Busiest states in the long run:", "--mechanism geometric"):
        assert word in plain.out
        assert word in drawn.out
    assert "drawing noise" in drawn.err


def test_a_narrow_terminal_cuts_no_number(here, monkeypatch):
    told = ("--states", "1..20", "--expected-total", 3e6, *TARGET, "--mechanism", "dirichlet")
    plain = here("plan", *told)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    drawn = re.sub("\x1b.*?m", "", here("plan", *told).out)
    assert "─" in drawn
    assert "…" not in drawn
    numbers = plain.out.split("would buy:")[1].split()
    assert [x for x in numbers if x[0].isdigit() and x not in drawn.split()] == []
    first = drawn.split("would buy:")[1].split("\n\n")[0]
    assert max(map(len, first.splitlines())) <= 80
