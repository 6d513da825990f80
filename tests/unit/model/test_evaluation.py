"""Predicates evaluated for partitions: all rows, none, or not known."""

import pytest

from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import Evaluation

DT = Dimension.of_column("dt", type="date")
TEXT = Dimension.of_column("dt", type="string")
DAY = Dimension.of_column("ts", "day", "ts_day", "date")
MONTH = Dimension.of_column("ts", "month", "ts_month", "int")
BUCKET = Dimension.of_column("dt", "bucket[4]", "dt_bucket", "int")
FLAG = Dimension.of_column("dt", type="boolean")


@pytest.mark.parametrize(
    ("dimension", "value", "where", "selected"),
    [
        pytest.param(DT, "2024-05-06", "dt = '2024-05-06'", True, id="date"),
        pytest.param(DT, "2024-05-06", "DT = DATE '2024-05-06'", True, id="case of the name"),
        pytest.param(DT, "2024-05-06", "t.dt = '2024-05-07'", False, id="another date"),
        pytest.param(DT, "2024-05-06", "dt >= '2024-05-06 12:00:00'", False, id="within the day"),
        pytest.param(DT, "2024-05-06", "dt >= '2024-05'", None, id="a month is no date"),
        pytest.param(DT, "2024-05-06", "dt >= '2024-05-06T00:00:00Z'", None, id="a zone"),
        pytest.param(DT, "2024-05-06", "dt between '2024-05-01' and '2024-05-07'", True, id="in"),
        pytest.param(DT, "2024-05-06", "dt in ('2024-05-05', '2024-05-06')", True, id="list"),
        pytest.param(DT, "2024-05-06", "dt = '2024-05-06' and amount > 0", None, id="data"),
        pytest.param(DT, "2024-05-06", "dt = '2024-05-05' and amount > 0", False, id="refuted"),
        pytest.param(DT, "2024-05-06", "dt = '2024-05-06' or amount > 0", True, id="decided"),
        pytest.param(DT, "2024-05-06", "not (dt < '2024-05-01')", None, id="NOT"),
        pytest.param(DT, "2024-05-06", "year(dt) = 2024", None, id="function"),
        pytest.param(DT, None, "dt >= '2024-05-01'", False, id="null compares with nothing"),
        pytest.param(DT, None, "dt is null", None, id="but may be asked for"),
        pytest.param(TEXT, "2024-05-06", "dt > '2024-05-05'", True, id="text, one format"),
        pytest.param(TEXT, "20240506", "dt = '2024-05-06'", None, id="text, another format"),
        pytest.param(TEXT, "9", "dt >= '10'", None, id="text or number"),
        pytest.param(TEXT, "5", "dt = '05'", None, id="equal as numbers"),
        pytest.param(TEXT, "5", "dt = '6'", False, id="unequal either way"),
        pytest.param(TEXT, "eu", "dt = 'us'", False, id="another text"),
        pytest.param(TEXT, "EU", "dt = 'eu'", False, id="case matters"),
        pytest.param(TEXT, "a b/c=d%", "dt = 'a b/c=d%'", True, id="odd text"),
        pytest.param(Dimension.of_column("dt", type="int"), "05", "dt = 5", True, id="integer"),
        pytest.param(Dimension.of_column("dt", type="int"), "9", "dt >= 10", False, id="numbers"),
        pytest.param(Dimension.of_column("dt", type="int"), "9", "dt >= 'x'", None, id="no number"),
        pytest.param(FLAG, "true", "dt = FALSE", False, id="flag"),
        pytest.param(
            Dimension.of_column("dt", type="timestamp"), "2024-05-06 03:00:00",
            "dt < '2024-05-06 04:00:00'", True, id="timestamp",
        ),
        pytest.param(DAY, "2024-05-06", "ts >= '2024-05-01'", True, id="days after"),
        pytest.param(DAY, "2024-05-06", "ts < '2024-05-01'", False, id="days before"),
        pytest.param(DAY, "2024-05-06", "ts >= '2024-05-06'", None, id="whose midnight"),
        pytest.param(DAY, "2024-05-06", "ts = '2024-05-09 00:00:00'", False, id="another day"),
        pytest.param(DAY, "2024-05-06", "ts = '2024-05-06 09:00:00'", None, id="a time of it"),
        pytest.param(DAY, "2024-05-06", "ts_day = '2024-05-06'", True, id="by its own name"),
        pytest.param(DAY, "9999-12-31", "ts >= '2024-05-01'", None, id="the end of time"),
        pytest.param(DAY, None, "ts >= '2024-05-01'", False, id="null of a transform"),
        pytest.param(DAY, "2024-05", "ts < '2024-05-20'", None, id="a month is no day"),
        pytest.param(
            MONTH, "2024-12", "ts < '2026-01-01'", True,
            id="month",
        ),
        pytest.param(
            Dimension.of_column("ts", "year", "ts_year", "int"), "2024", "ts < '2024-01-01'", None,
            id="year",
        ),
        pytest.param(
            BUCKET, "3", "dt = 3", None, id="bucket"
        ),
    ],
)  # fmt: skip
def test_a_predicate_of_a_partition(dimension, value, where, selected):
    partition = Partition.from_values([(dimension.label, value)])
    assert Evaluation([dimension]).selects(predicates.condition(where), partition) is selected
