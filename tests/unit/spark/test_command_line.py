"""What the text of a command shows of its spark-submit."""

from __future__ import annotations

import os
import shlex

import pytest

from airflow_provider_sparklineage.spark.submit.submission import (
    CommandLine,
    Submission,
    named_scripts,
    read_command_line,
    shell_arguments,
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
