"""A cluster of two worker processes, which each file starts once."""

import distributed
import pytest
from made_rows import start


@pytest.fixture(scope="module")
def client():
    with start() as cluster, distributed.Client(cluster) as client:
        yield client
