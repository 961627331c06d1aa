"""Campaigns on executors, and pickled objects."""

import concurrent.futures as futures
import json
import os
import pathlib
import pickle
import signal
import sys

import numpy as np
import pytest

import wavesim
from wavesim import campaign

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


def plan(**more):
    kernels = [str(EXAMPLES / "vector_add.rdna"), str(EXAMPLES / "broken" / "missing_wait.rdna")]
    return {"name": "test", "cases": [{"kernels": kernels, "seeds": "0..3", **more}]}


def facts(report):
    return [(case["name"], case["status"], case.get("output")) for case in report.cases]


def test_outcomes_findings_and_results_pickle():
    result = wavesim.run((EXAMPLES / "broken" / "missing_wait.rdna").read_text(), check="all")
    copy = pickle.loads(pickle.dumps(result))
    assert copy.instructions == result.instructions and copy.report == result.report
    [old], [new] = result.findings, copy.findings
    assert (new.check, new.line, new.hint, str(new), repr(new)) == (old.check, old.line, old.hint, str(old), repr(old))
    assert (new.workgroup, new.wave, new.lane, new.address) == (old.workgroup, old.wave, old.lane, old.address)
    for name, array in result.outputs.items():
        np.testing.assert_array_equal(copy[name], array)


def test_faults_and_devices_pickle():
    device = pickle.loads(pickle.dumps(wavesim.Device("gfx1201")))
    assert device.target == "gfx1201"
    kernel = wavesim.Device("gfx1100").load(EXAMPLES / "scale.s").scale
    with pytest.raises(wavesim.Fault) as raised:
        kernel[2, 32](np.zeros(10, np.float32), np.zeros(50, np.float32), 2.5, 50)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is wavesim.Fault and str(copy) == str(raised.value)
    assert (copy.kind, copy.line, copy.address) == (raised.value.kind, raised.value.line, raised.value.address)


def test_every_executor_has_the_results_of_a_serial_run(tmp_path):
    serial = campaign.run(plan(), futures.ThreadPoolExecutor(1), results=tmp_path / "serial.db")
    assert serial.counts == {"passed": 3, "failed": 3, "invalid": 0, "timeout": 0, "crashed": 0}
    assert serial.done == 6 and not serial.passed
    with futures.ProcessPoolExecutor(2) as pool:
        seen = []
        report = campaign.run(plan(), pool, results=tmp_path / "pool.db", progress=lambda *n: seen.append(n))
    assert facts(report) == facts(serial) and seen[-1] == (6, 6)
    # What has a result does not run again.
    again = campaign.run(plan(), results=tmp_path / "pool.db")
    assert (again.done, again.known) == (0, 6)
    more = campaign.run(plan(targets=["rdna3"]), results=tmp_path / "pool.db")
    assert (more.done, more.known) == (6, 0)


def _lose(case, limits, keep_all):
    """The first case ends its worker, once."""
    marker = os.environ["WAVESIM_TEST_MARKER"]
    if case[0].endswith("--seed=1") and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return _original(case, limits, keep_all)


_original = campaign._case


def test_a_lost_worker_is_replaced(tmp_path, monkeypatch):
    serial = campaign.run(plan(), results=tmp_path / "serial.db")
    monkeypatch.setenv("WAVESIM_TEST_MARKER", str(tmp_path / "marker"))
    monkeypatch.setattr(campaign, "_case", _lose)
    report = campaign.run(plan(), lambda: futures.ProcessPoolExecutor(2), results=tmp_path / "lost.db")
    assert (tmp_path / "marker").exists()
    assert facts(report) == facts(serial)
    # Without a function, the error says what to do; what has arrived is kept.
    (tmp_path / "marker").unlink()
    with futures.ProcessPoolExecutor(2) as pool, pytest.raises(wavesim.Error, match="a function that makes one"):
        campaign.run(plan(), pool, results=tmp_path / "broken.db")
    report = campaign.run(plan(), results=tmp_path / "broken.db")
    assert facts(report) == facts(serial) and report.done + report.known == 6


@pytest.fixture(params=["dask", "ray"])
def cluster(request, monkeypatch, tmp_path):
    """A cluster of three worker processes on this machine: its executor."""
    monkeypatch.setenv("WAVESIM_TEST_MARKER", str(tmp_path / "marker"))
    # Workers import this file.
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])
    monkeypatch.setenv("PYTHONPATH", path)
    if request.param == "dask":
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(3, threads_per_worker=1, processes=True, dashboard_address=None) as local:
            with distributed.Client(local) as client:
                yield client
    else:
        ray = pytest.importorskip("ray")
        ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
        yield campaign.RayExecutor()
        ray.shutdown()


def test_clusters_have_the_results_of_a_serial_run(tmp_path, monkeypatch, cluster):
    serial = campaign.run(plan(), futures.ThreadPoolExecutor(1), results=tmp_path / "serial.db")
    # A worker is killed in the middle: its case runs again, and each case has one result.
    monkeypatch.setattr(campaign, "_case", _lose)
    report = campaign.run(plan(), cluster, results=tmp_path / "cluster.db")
    assert (tmp_path / "marker").exists()
    assert facts(report) == facts(serial)
    assert (report.done, report.known) == (6, 0)


def test_shards_and_wrong_plans(tmp_path):
    names = [campaign.run(plan(), results=tmp_path / f"{i}.db", shard=f"{i}/2").cases for i in (1, 2)]
    assert len({case["name"] for part in names for case in part}) == 6
    for wrong, message in [({"cases": []}, "there are no"), ({"x": 1}, "unknown field `x`")]:
        with pytest.raises(wavesim.Error, match=message):
            campaign.run(wrong, results=tmp_path / "x.db")
    with pytest.raises(wavesim.Error, match="No such file"):
        campaign.run(tmp_path / "none.toml", results=tmp_path / "x.db")


def test_a_plan_in_toml(tmp_path):
    (tmp_path / "a.rdna").write_text((EXAMPLES / "vector_add.rdna").read_text())
    (tmp_path / "plan.toml").write_text("[[cases]]\nmode = 'run'\nkernels = ['a.rdna']\n[limits]\nseconds = 50\n")
    report = campaign.run(tmp_path / "plan.toml", results=tmp_path / "r.db")
    assert report.passed and report.cases[0]["name"] == "run a.rdna"
    assert json.loads(json.dumps(report.cases)) == report.cases
