"""The jars fit the Python packages, and a jar set is complete or absent."""

import re
from pathlib import Path

import jars
import pytest
import steps

LOCK = (Path(__file__).parents[3] / "requirements.lock").read_text()


def locked(package: str) -> str:
    return re.search(rf"^{package}==(\S+)", LOCK, re.MULTILINE).group(1)


def test_the_jars_have_the_versions_of_the_python_packages() -> None:
    spark_minor = locked("pyspark").rpartition(".")[0]
    expected = f"io.delta:delta-spark_{spark_minor}_2.13:{locked('delta-spark')}"
    assert expected == jars.conf_value("spark.jars.packages")
    assert locked("pyspark") == jars.SPARK_VERSION


@pytest.fixture
def resolved(tmp_path, monkeypatch):
    """Jar sets in a temporary cache; each resolution yields one jar named after its package and is noted."""
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    monkeypatch.setattr(steps, "CACHE", tmp_path)
    notes = []

    def spark_packages(resolution, ivy) -> None:
        notes.append(resolution.packages.split(":")[1])
        if notes[-1] == "interrupted":
            raise KeyboardInterrupt
        (ivy / "jars").mkdir(parents=True, exist_ok=True)
        (ivy / "jars" / f"{notes[-1]}.jar").touch()

    monkeypatch.setattr(jars, "spark_packages", spark_packages)
    return notes


def test_a_set_is_resolved_once(resolved) -> None:
    first, second = jars.fetch("kafka"), jars.fetch("kafka")
    expected = ["spark-sql-kafka-0-10_2.13"]
    assert (expected, expected) == (resolved, [jar.stem for jar in first])
    assert first == second


def test_a_set_whose_coordinates_changed_is_resolved_anew(resolved, monkeypatch) -> None:
    jars.fetch("kafka")
    monkeypatch.setattr(jars, "KAFKA_CONNECTOR", "org.example:another:1")
    assert ["another"] == [jar.stem for jar in jars.fetch("kafka")]


def test_an_interrupted_resolution_leaves_no_set(resolved, monkeypatch) -> None:
    monkeypatch.setattr(jars, "KAFKA_CONNECTOR", "org.example:interrupted:1")
    with pytest.raises(KeyboardInterrupt):
        jars.fetch("kafka")
    assert not jars.folder("kafka").exists()
    monkeypatch.setattr(jars, "KAFKA_CONNECTOR", "org.example:another:1")
    assert len(jars.fetch("kafka")) == 1


def test_an_unknown_set_is_named_with_the_known_ones() -> None:
    with pytest.raises(steps.SetupError, match="no jar set 'pulsar'; there are delta, kafka, s3, kafka-broker"):
        jars.fetch("pulsar")
