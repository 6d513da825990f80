"""What the text of a command shows of its spark-submit."""

from __future__ import annotations

import os
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_provider_sparklineage.spark.submit.releases import (
    DATABRICKS,
    DATAPROC,
    DATAPROC_SERVERLESS,
    EMR,
    GLUE,
    spark_of,
)
from airflow_provider_sparklineage.spark.submit.submission import (
    CommandLine,
    Submission,
    arguments,
    named_scripts,
    read_arguments,
    read_command_line,
    shell_arguments,
    with_arguments,
)

M = "{{ macros.sparklineage.submit_args() }}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param(
            f"spark-submit {M} job.py --date x",
            {"binary": "spark-submit", "application": "job.py"},
            id="the usual",
        ),
        pytest.param(
            f"/opt/spark/bin/spark3-submit {M} --master yarn --deploy-mode=cluster 's3a://j/job.py'",
            {
                "binary": "/opt/spark/bin/spark3-submit",
                "application": "s3a://j/job.py",
                "master": "yarn",
                "deploy_mode": "cluster",
            },
            id="of a cluster",
        ),
        pytest.param(
            f'spark-submit --master "local[*]" \\\n  {M} \\\n  {{{{ params.folder }}}}/job.py',
            {"binary": "spark-submit", "application": "$/job.py", "master": "local[*]"},
            id="on several lines",
        ),
        pytest.param(
            f"spark-submit --master {{{{ params.master }}}} {M} $JOB",
            {"binary": "spark-submit"},
            id="what is a variable or an expression is not known",
        ),
        pytest.param(
            f"python prepare.py && spark-submit {M} app.jar | tee job.py",
            {"binary": "spark-submit"},
            id="other statements do not count",
        ),
        pytest.param(
            "SPARK_CONF_DIR={{ macros.sparklineage.submit_args() | trim }} spark-submit job.py",
            {"binary": "spark-submit", "application": "job.py"},
            id="a filter is no pipe",
        ),
        pytest.param(f"echo not-spark-submit {M}", {}, id="another program"),
        pytest.param(
            f"ARGS={M}\nspark-submit $ARGS --jars a.jar job.py",
            {"binary": "spark-submit", "application": "job.py", "colliding": ("--jars",)},
            id="by way of a variable",
        ),
    ],
)
def test_what_a_text_shows(text, shown):
    assert read_command_line(text, "submit_args") == CommandLine(**shown)


@pytest.mark.parametrize(
    ("flags", "colliding"),
    [
        ("--jars a.jar", ("--jars",)),
        ("--jars=a.jar --py-files b.zip", ("--jars", "--py-files")),
        ("'--properties-file' p", ("--properties-file",)),
        (
            "--conf spark.jars=a.jar --conf 'spark.extraListeners=A'",
            ("spark.jars", "spark.extraListeners"),
        ),
        ("--conf spark.submit.pyFiles=a", ("spark.submit.pyFiles",)),
        ("--conf spark.jars.packages=g:a:1 --packages g:a:1 --files jars.txt", ()),
        ("--conf spark.x=own.spark.jars=1", ()),
        ("job.py --jarsize 3", ()),
    ],
)
def test_flags_of_which_spark_takes_one_are_seen(flags, colliding):
    assert read_command_line(f"spark-submit {M} {flags} x.py", "submit_args").colliding == colliding


def test_what_is_given_to_the_macro_collides_with_nothing():
    call = (
        "{{ macros.sparklineage.submit_args(jars='--jars', conf={'spark.jars': 'spark.jars=x'}) }}"
    )
    assert read_command_line(f"spark-submit {call} job.py", "submit_args").colliding == ()


def test_a_long_text_is_read_in_time_linear_to_its_length():
    text = f"spark-submit {M} " + "--conf spark.x=1 \\\n" * 20_000 + "{{ x }} " * 20_000
    assert read_command_line(text, "submit_args").binary == "spark-submit"


def test_scripts_that_a_text_names_are_read(tmp_path):
    one, two = tmp_path / "one.sh", tmp_path / "two.bash"
    one.write_text("spark-submit a.py")
    two.write_text("spark-submit --jars b.jar b.py")
    os.mkfifo(tmp_path / "pipe.sh")
    text = f"cd / && {one} x; ({two}) '{one}' {tmp_path}/none.sh {tmp_path}/pipe.sh /$X/c.sh d.sh"
    assert [*named_scripts(text)] == ["spark-submit a.py", "spark-submit --jars b.jar b.py"]


def test_arguments_are_words_of_a_shell():
    submission = Submission(
        conf={"spark.a": "b c", "spark.d": "'"},
        jars="a b.jar",
        py_files="x",
        properties_file="/tmp/p q",
    )
    words = shlex.split(shell_arguments(submission))
    assert words == [
        *("--properties-file", "/tmp/p q"),
        *("--jars", "a b.jar", "--py-files", "x"),
        *("--conf", "spark.a=b c", "--conf", "spark.d='"),
    ]
    assert shell_arguments(Submission()) == ""


def test_in_a_file_arguments_win_over_what_the_file_had():
    submission = Submission(
        conf={"spark.a": "1"},
        jars="j",
        packages="p",
        py_files="f",
        application="job.py",
        file_properties={"spark.a": "0", "spark.b": "2", "spark.jars": "old"},
    )
    after = submission.all_in_file()
    assert after.new_file == {
        "spark.a": "1",
        "spark.b": "2",
        "spark.jars": "j",
        "spark.jars.packages": "p",
        "spark.submit.pyFiles": "f",
    }
    assert shell_arguments(after) == ""
    assert after.application == "job.py"


# --- arguments as a list --------------------------------------------------------------------------

WORDS = [
    *("--deploy-mode", "cluster", "--conf", "spark.a=1", "-c", "spark.b=x=y", "--verbose"),
    *("--jars=/a.jar,/b.jar", "--class", "shop.Totals", "s3://lake/job.py", "--conf", "spark.a=2"),
]


def test_arguments_are_read_as_spark_submit_does():
    found = read_arguments(WORDS)
    assert found.conf == {"spark.a": "1", "spark.b": "x=y"}
    assert found.jars == "/a.jar,/b.jar"
    assert found.py_files is None
    assert found.application == "s3://lake/job.py"
    assert read_arguments(WORDS[:-3], "job.py").application == "job.py"
    assert read_arguments([]) == Submission()
    assert read_arguments(["--conf"]).application == ""
    assert read_arguments(["-", "job.py"]).application == ""


def test_arguments_that_are_not_changed_keep_their_form():
    assert with_arguments(WORDS, read_arguments(WORDS)) == WORDS


def test_changed_arguments_come_before_the_application():
    before = read_arguments(WORDS)
    after = replace(
        before.with_conf({"spark.b": "z", "spark.c": "(?i)a|b"}), jars="/c.jar", py_files="o.zip"
    ).without_conf("spark.a")
    assert with_arguments(WORDS, after) == [
        *("--deploy-mode", "cluster", "--verbose", "--class", "shop.Totals"),
        *("--jars", "/c.jar", "--py-files", "o.zip"),
        *("--conf", "spark.b=z", "--conf", "spark.c=(?i)a|b"),
        *("s3://lake/job.py", "--conf", "spark.a=2"),
    ]


_VALUES = st.text("abc =-/", min_size=1).map(str.strip).filter(bool)
_CONF = st.dictionaries(st.sampled_from(["spark.a", "spark.b", "spark.c"]), _VALUES)


@given(_CONF, _CONF, st.none() | _VALUES, st.none() | _VALUES)
def test_what_is_written_is_what_is_read(before, after, jars, py_files):
    words = [*arguments(Submission(conf=before, jars=jars)), "job.py", "--jars", "x"]
    changed = Submission(conf=after, jars=py_files, py_files=jars, application="job.py")
    assert read_arguments(with_arguments(words, changed)) == changed


@pytest.mark.parametrize(
    ("releases", "label", "spark"),
    [
        (EMR, "emr-7.9.0", ("3.5", "2.12")),
        (EMR, "emr-7.10.0-20250801", ("3.5", "2.12")),
        (EMR, "emr-7.12.0-latest", ("3.5", "2.12")),
        (EMR, "emr-6.15.0", ("3.4", "2.12")),
        (EMR, "emr-6.5.1", ("3.1", "2.12")),
        (EMR, "emr-8.0.0", None),
        (GLUE, "5.0", ("3.5", "2.12")),
        (GLUE, "6.0", ("4.1", "2.13")),
        (GLUE, "4.0", ("3.3", "2.12")),
        (GLUE, "7.0", None),
        (DATAPROC, "2.2.65-debian12", ("3.5", "2.12")),
        (DATAPROC, "2.20", None),
        (DATAPROC_SERVERLESS, "2.2", ("3.5", "2.13")),
        (DATAPROC_SERVERLESS, "1.2.3", ("3.5", "2.12")),
        (DATABRICKS, "15.4.x-scala2.12", ("3.5", "2.12")),
        (DATABRICKS, "17.3.x-cpu-ml-scala2.13", ("4.0", "2.13")),
        (DATABRICKS, "auto:latest", None),
        (EMR, None, None),
    ],
)
def test_a_release_has_its_spark(releases, label, spark):
    assert spark_of(releases, label) == spark
