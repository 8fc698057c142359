"""Options before the job file are the wrapper's or Spark's, options after it the job's."""

import pytest
from command_line import parse, properties

JOB = "jobs/throttle.py"


@pytest.mark.parametrize(
    ("arguments", "spark", "job_arguments"),
    [
        ([JOB], [], []),
        ([JOB, "--once", "--master", "x"], [], ["--once", "--master", "x"]),
        (["--master", "yarn", JOB, "a.py"], ["--master", "yarn"], ["a.py"]),
        (["--master=yarn", JOB], ["--master", "yarn"], []),
        (["--verbose", "--name", "quota.py", JOB], ["--verbose", "--name", "quota.py"], []),
        (["--conf", "spark.a=b=c", "-c", "d=e", JOB], ["--conf", "spark.a=b=c", "-c", "d=e"], []),
        (["--supervise", "--show-spark-log", JOB, "--version"], ["--supervise"], ["--version"]),
    ],
)
def test_the_first_argument_that_is_no_option_is_the_job(arguments, spark, job_arguments) -> None:
    line = parse(arguments)
    assert (spark, JOB, job_arguments) == (line.spark, line.job, line.job_arguments)


def test_jars_and_python_files_are_kept_apart_to_be_joined_with_headgates() -> None:
    line = parse(["--jars", "a.jar,b.jar", "--py-files=c.zip", "--jars", "d.jar", JOB])
    expected = {"--jars": ["a.jar,b.jar", "d.jar"], "--py-files": ["c.zip"]}
    assert expected == line.lists
    assert not line.spark


def test_no_job_file_is_known_as_such() -> None:
    assert parse(["--master", "yarn"]).job is None
    assert parse([]).job is None


def test_an_option_without_its_value_stays_with_spark_which_says_so() -> None:
    expected = ["--master"]
    assert expected == parse(["--master"]).spark


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([JOB], False),
        (["--with-kafka", JOB], True),
        ([JOB, "--format", "kafka"], True),
        ([JOB, "--format=kafka", "--once"], True),
        ([JOB, "--commands-topic", "commands"], True),
        ([JOB, "--commands-topic=commands"], True),
        ([JOB, "--format", "delta", "--table", "kafka"], False),
        ([JOB, "--format"], False),
    ],
)
def test_kafka_is_loaded_for_jobs_that_use_it(arguments, wanted) -> None:
    assert wanted == parse(arguments).wants_kafka


@pytest.mark.parametrize(
    ("arguments", "wants"),
    [
        ([JOB, "--output", "out"], False),
        (["--with-s3", JOB, "--output", "out"], True),
        ([JOB, "--input", "s3a://b/in", "--output", "out"], True),
        ([JOB, "--output=s3a://b/out"], True),
        ([JOB, "--output", "out", "--checkpoint=s3a://b/c"], True),
    ],
)
def test_s3_is_loaded_for_jobs_with_places_there(arguments, wants) -> None:
    assert wants == parse(arguments).wants_s3


@pytest.mark.parametrize(
    ("arguments", "master"),
    [
        ([], "local[*]"),
        (["--master", "spark://h:7077"], "spark://h:7077"),
        (["--conf", "spark.master=yarn"], "yarn"),
        (["--properties-file", "{file}"], "k8s://h"),
        (["--properties-file", "{file}", "--conf", "spark.master=yarn"], "yarn"),
        (["--conf", "spark.master=yarn", "--master", "local[2]"], "local[2]"),
        (["--properties-file", "/nowhere"], "local[*]"),
    ],
)
def test_the_master_is_the_one_that_spark_will_take(arguments, master, tmp_path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("spark.master k8s://h\n")
    line = parse([argument.format(file=file) for argument in arguments])
    assert master == line.master({"spark.master": "local[*]"})
    assert master.startswith("local") == line.is_local({"spark.master": "local[*]"})


def test_properties_are_read_as_spark_reads_them(tmp_path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("# a comment\n\nspark.a   b c\nspark.d=e\nspark.f = g=h\nspark.i\tj\n")
    expected = {"spark.a": "b c", "spark.d": "e", "spark.f": "g=h", "spark.i": "j"}
    assert expected == properties(file)
