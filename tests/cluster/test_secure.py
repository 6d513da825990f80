"""A Hadoop that believes nobody: Kerberos for all, TLS for WebHDFS, encrypted calls and blocks."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_sparklineage.storage.objects import Objects
from tests.cluster import kerberos, mini_cluster
from tests.cluster.submitting import USER, WORKER_USER
from tests.cluster.test_on_yarn import argument

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

RM_CONNECT = "spark.hadoop.yarn.resourcemanager.connect"
NEEDED = "tests of a secure Hadoop need requests-kerberos: make test-cluster says how to get it"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a secure HDFS and YARN instead of the open ones."""
    pytest.importorskip("requests_kerberos", reason=NEEDED)
    folder = tmp_path_factory.mktemp("secure")
    with mini_cluster.running(folder, secure=True) as cluster, pytest.MonkeyPatch.context() as env:
        for name, value in kerberos.environment(folder).items():
            env.setenv(name, value)
        cluster.make_folder(f"/user/{USER}", USER)
        yield cluster


@pytest.fixture
def has_ticket(cluster, monkeypatch):
    """Give the worker's process the ticket of a user: ``has_ticket(WORKER_USER)``."""

    def get(user, lifetime_s=None):
        file = kerberos.ticket(cluster.folder, user, lifetime_s)
        monkeypatch.setenv("KRB5CCNAME", str(file))

    return get


@pytest.fixture
def submit(submit, cluster, has_ticket):
    """Let the jobs log in by a keytab, and the worker have a ticket of its own."""
    has_ticket(WORKER_USER)

    def run(application, *arguments, **options):
        by_keytab = {"keytab": str(cluster.keytab), "principal": f"{USER}@{kerberos.REALM}"}
        return submit(application, *arguments, **{**by_keytab, **options})

    return run


def test_files_are_what_they_are_on_a_disk(cluster, capture_at, has_ticket, tmp_path):
    capture_at(cluster, WORKER_USER, "770")
    has_ticket(WORKER_USER)
    files = Objects(os.environ["AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION"])
    with pytest.raises(FileNotFoundError):
        files.read("nothing")
    large = os.urandom(40 << 20)  # takes longer than the time limit for connecting
    files.write("large", large)
    assert files.read("large") == large
    files.download("large", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == large
    names = [f"attempt/events-{number:05d}.ndjson" for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: files.write(name, name.encode()), names))
        assert list(pool.map(files.read, names)) == [name.encode() for name in names]
    files.write(names[0], b"")
    files.remove(names[1])
    assert files.files("attempt")[names[0].rpartition("/")[2]] == 0
    assert len(files.names("attempt")) == len(names) - 1
    files.remove_folder("attempt")
    assert files.names("") == ["large"]


OUTPUTS = ("revenue", "staging/enriched_orders")


def is_complete(ran, lake):
    """Whether nothing is missing in the event of ``staging_chain``."""
    assert ran.error is None
    assert ran.degradations == {}
    assert ran.inputs == [f"{lake}/customers", f"{lake}/orders", f"{lake}/rates"]
    assert ran.outputs == [f"{lake}/{name}" for name in OUTPUTS]
    revenue = next(d for d in ran.lineage.outputs if d.name.endswith("/revenue"))
    fields = revenue.facets["columnLineage"].fields["revenue"]["inputFields"]
    return [f["field"] for f in fields] == ["amount", "rate"]


def test_jobs_with_a_keytab_report_all_and_fill_the_tools_folder_once(submit, captures, lake):
    first = submit("staging_chain", lake)
    assert is_complete(first, lake)
    filled = captures.tools()
    second = submit("staging_chain", lake)
    assert is_complete(second, lake)
    assert captures.tools().items() >= filled.items()
    assert argument(first, "--jars").startswith("/")
    assert argument(second, "--jars").startswith(f"{captures.url}/.tools/")
    assert captures.files() == []
    assert closed_to_strangers(captures)


def test_a_job_with_the_ticket_of_the_worker(submit, captures, lake, has_ticket):
    has_ticket(USER)
    ran = submit("staging_chain", lake, keytab=None, principal=None)
    assert is_complete(ran, lake)
    assert captures.files() == []


def test_airflow_asks_yarn_for_the_end_by_the_ticket(submit, captures, lake):
    ran = submit("create_then_read", lake, yarn_track_via_rm_api=True)
    assert ran.error is None
    assert ran.degradations == {}
    assert ran.outputs == [f"{lake}/paid_total", f"{lake}/staging/paid_orders"]


@pytest.mark.parametrize(
    ("ticket", "reason"),
    [
        ("none", "No Kerberos credentials available"),
        ("expired", "expired"),
        ("stranger", "Permission denied: user=stranger"),
    ],
)
def test_a_worker_that_may_not_write_there_declares_it_and_the_job_runs(
    submit, captures, lake, has_ticket, tmp_path, monkeypatch, ticket, reason
):
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    if ticket == "expired":
        has_ticket(WORKER_USER, lifetime_s=1)
        time.sleep(2)
    elif ticket == "stranger":
        has_ticket(kerberos.STRANGER)
    ran = submit("create_then_read", lake)
    assert ran.error is None
    [message] = ran.degradations.values()
    assert reason in message
    assert ("airflow kerberos" in message) == (ticket != "stranger")
    assert captures.tools() == {}  # the driver delivers all the same, by its own rights


def test_without_ticket_and_keytab_the_job_ends_as_without_lineage(
    submit, captures, lake, tmp_path, monkeypatch
):
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
    # YARN's clients would try again for a quarter of an hour.
    waits = {f"{RM_CONNECT}.max-wait.ms": "3000", f"{RM_CONNECT}.retry-interval.ms": "1000"}
    login = {"keytab": None, "principal": None, "conf": waits}
    stock = submit("create_then_read", lake, lineage=False, **login)
    ran = submit("create_then_read", lake, **login)
    for each in (stock, ran):
        assert "Error code is: 1." in str(each.error)
        assert "Client cannot authenticate" in str(each.error)
    assert "No Kerberos credentials available" in "".join(ran.degradations.values())


def closed_to_strangers(captures):
    """Whether a user with a ticket, and not of the group, may neither list nor read."""
    strangers = captures.cluster.files(kerberos.STRANGER)
    for name in ("", *captures.tools()):
        with pytest.raises(PermissionError, match="user=stranger"):
            strangers.info(f"{captures.path}/.tools/{name}")
    return True
