import pytest

from unit.report.empty_tables import empty_tables


@pytest.fixture
def tables(tmp_path):
    return empty_tables(tmp_path)
