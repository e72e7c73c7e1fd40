"""--dask: the rows of a verb on a Dask cluster."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from scoreline.cli.output import Output
from scoreline.cli.reading import read
from scoreline.io import Dataset
from scoreline.io.mapped_folder import HEADER
from scoreline.runtime.optional import require
from scoreline.runtime.vectors import room_module

LOCAL = "local"
PATIENCE = "10s"  # to find a scheduler


@contextmanager
def connected(address: str, output: Output) -> Iterator[Any]:
    """Connect to a scheduler, or start workers on this machine, and let go of them at the end."""
    distributed = require("distributed", "dask", "--dask")
    with ExitStack() as stack:
        if address == LOCAL:
            cluster = stack.enter_context(distributed.LocalCluster(dashboard_address=None, processes=True))
            client = stack.enter_context(distributed.Client(cluster))
        else:
            try:
                known = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
                client = stack.enter_context(distributed.Client(**known, timeout=PATIENCE))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"--dask {address}: no Dask scheduler answers there ({type(error).__name__}); expected an address like "
                    "tcp://10.0.0.1:8786, a file that a scheduler wrote, or local for workers on this machine"
                ) from error
        threads = client.nthreads()
        output.note(f"{len(threads)} workers with {sum(threads.values())} threads at {client.scheduler.address}")
        yield client


def read_on_cluster(options: Any, output: Output, client: Any) -> Dataset:
    """Open folders on the workers; read any other file here, and send its rows to them."""
    place = Path(options.file)
    if place.is_dir():
        inner = sorted(path.parent for path in place.glob(f"*/{HEADER}"))
        if (place / HEADER).exists() or inner:
            folders = [place] if (place / HEADER).exists() else inner
            return room_module("blocks", "mapped_parts").open_on_workers(folders, client)
    data = read(options, output)
    if not hasattr(data.X, "__array__") and not hasattr(data.X, "indptr"):
        raise ValueError(f"{options.file} is no file of rows that can be sent; convert it to a folder first")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # that is what was asked for
        operator = room_module("blocks", "dask_operator").sent(data.X, client)
        return data._replace(X=operator, y=None if data.y is None else operator.aligned(data.y))
