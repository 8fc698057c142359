"""`headgate job`: which job, and what Spark is told. That it runs: tests/integration/test_wheel.py."""

import argparse
import os
import subprocess
import sys

from headgate.cli import main
from headgate.jobs import add_job_arguments, home, spark_arguments


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_job_arguments(parser)
    return parser.parse_args(arguments)


def test_options_before_the_job_are_for_spark_and_those_after_it_for_the_job():
    given = parsed("--conf", "a=1 2", "--master", "spark://m:7077", "throttle", "--once", "--conf", "x")
    assert ["--master", "spark://m:7077", "--conf", "a=1 2", "pyspark-shell"] == spark_arguments(given)
    assert ("throttle", ["--once", "--conf", "x"]) == (given.job, given.arguments)


def test_a_properties_file_is_above_the_settings_of_headgate():
    given = parsed("--properties-file", "f", "throttle")
    assert ["--properties-file", "f", "--load-spark-defaults", "pyspark-shell"] == spark_arguments(given)


def test_a_job_that_is_not_there_is_refused_with_those_that_are(capsys):
    assert main(["job", "throtle"]) == 2
    assert f"got throtle; allowed is what is in {home() / 'jobs'}: cache_sweep, " in capsys.readouterr().err


def test_without_java_it_says_so(capsys, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert main(["job", "throttle", "--no-such-option"]) == 2
    assert "there is no /nowhere/bin/java" in capsys.readouterr().err


def test_the_process_becomes_the_job():
    command = [sys.executable, "-m", "headgate", "job", "throttle", "--help"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert (0, "usage: throttle ") == (done.returncode, done.stdout[:16])
