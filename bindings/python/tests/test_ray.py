"""Vectors in actors of Ray Data, on a cluster of two nodes."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BERT, PORTABLE, change_weights
from isovec import ConfigError, Embedder, EmbedderSpec

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")

from isovec.ray import EmbedTexts, embed  # noqa: E402

SAME_BITS = {**PORTABLE, "session": {"deterministic_compute": True}}
TEXTS = [f"the dog number {at} has a tail" if at % 7 else None for at in range(400)]
THERE = [text for text in TEXTS if text is not None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two nodes with a seat for one actor each, as two raylets on this machine."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": 1 << 30, "resources": {"seat": 1}}
    # Ray gives each process beside a node some seconds to start, which on a busy machine are too few.
    for left in (2, 1, 0):
        nodes = Cluster()
        try:
            nodes.add_node(**node, include_dashboard=False)
            nodes.add_node(**node)
            break
        except Exception:
            nodes.shutdown()
            if not left:
                raise
    ray.init(address=nodes.address, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Otherwise the first actor may do all the work before the second has started.
    context.wait_for_min_actors_s = 300
    yield
    ray.shutdown()
    nodes.shutdown()


def dataset(blocks: int = 4) -> Any:
    table = pa.table({"id": list(range(len(TEXTS))), "text": pa.array(TEXTS)})
    rows = len(TEXTS) // blocks
    return ray.data.from_arrow([table.slice(at * rows, rows) for at in range(blocks)])


def table_of(found: Any) -> Any:
    """The rows of a dataset, in the order of their ids."""
    return pa.concat_tables(ray.get(found.to_arrow_refs())).sort_by("id")


@pytest.mark.usefixtures("cluster")
def test_two_nodes_give_the_vectors_of_python() -> None:
    embedder = Embedder(BERT, config=SAME_BITS)
    found = embed(dataset(), embedder, concurrency=2, batch_size=50, ray_remote_args={"resources": {"seat": 1}})
    table = table_of(found)
    vectors = table["vector"].combine_chunks()
    assert vectors.type == pa.list_(pa.field("item", pa.float32(), nullable=False), 32)
    assert [vector is None for vector in vectors.to_pylist()] == [text is None for text in TEXTS]
    assert vectors.drop_null().flatten().to_numpy().tobytes() == embedder.embed_passages(THERE).tobytes()


@pytest.mark.usefixtures("cluster")
def test_each_actor_has_one_model_and_its_share_of_threads() -> None:
    # A class of this function travels by its code: no worker can import this file.
    class EmbedTextsAndSayWhere(EmbedTexts):
        def __call__(self, batch: Any) -> Any:
            knobs = {knob["name"]: knob["used"] for knob in self._spec.embedder(cpus=self._cpus).effective_config()}
            said = {
                "process": os.getpid(),
                "node": ray.get_runtime_context().get_node_id(),
                "threads": int(knobs["session.intra_op_threads"]),
            }
            batch = super().__call__(batch)
            for name, value in said.items():
                batch = batch.append_column(name, pa.array([value] * len(batch)))
            return batch

    spec = EmbedderSpec(BERT, config=SAME_BITS, prompt="query")
    found = dataset(20).map_batches(
        EmbedTextsAndSayWhere,
        fn_constructor_args=[spec],
        fn_constructor_kwargs={"into": "other"},
        batch_format="pyarrow",
        batch_size=20,
        compute=ray.data.ActorPoolStrategy(size=2, max_tasks_in_flight_per_actor=1),
        resources={"seat": 1},
    )
    table = table_of(found)
    assert len(set(table["process"].to_pylist())) == 2 == len(set(table["node"].to_pylist()))
    assert set(table["threads"].to_pylist()) == {1}
    assert os.getpid() not in table["process"].to_pylist()
    expected = Embedder(BERT, config=SAME_BITS).embed_queries(THERE)
    assert table["other"].combine_chunks().drop_null().flatten().to_numpy().tobytes() == expected.tobytes()


@pytest.mark.usefixtures("cluster")
def test_an_actor_without_the_model_says_so(folder: Path) -> None:
    planned = embed(dataset(1), folder, config=PORTABLE)
    shutil.rmtree(folder)
    said = failure(planned)
    assert "could not load the model" in said and str(folder) in said and "each machine needs the model's files" in said


@pytest.mark.usefixtures("cluster")
def test_an_actor_with_another_model_is_refused(folder: Path) -> None:
    planned = embed(dataset(1), folder, config=PORTABLE)
    change_weights(folder)
    said = failure(planned)
    assert "IncompatibleIndexError" in said and "it is not the one that the work was planned with (weights: " in said


@pytest.mark.usefixtures("cluster")
def test_an_actor_with_another_version_is_refused(tmp_path: Path) -> None:
    # The same package under another version, first on the path of the actor.
    specification = importlib.util.find_spec("isovec")
    assert specification is not None and specification.origin is not None
    package = tmp_path / "isovec"
    shutil.copytree(Path(specification.origin).parent, package, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    [compiled] = [path for path in Path(specification.origin).parent.iterdir() if path.name.startswith("_isovec.") and path.suffix != ".pyi"]
    (package / compiled.name).symlink_to(compiled)
    init = package / "__init__.py"
    init.write_text(init.read_text() + '\nfrom . import _isovec\n_isovec.__version__ = __version__ = "99.0.0"\n')
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    remote = {"runtime_env": {"env_vars": {"PYTHONPATH": path}}}
    said = failure(embed(dataset(1), BERT, config=PORTABLE, ray_remote_args=remote))
    assert "has isovec 99.0.0, and the work was planned with" in said


@pytest.mark.usefixtures("cluster")
def test_a_wrong_column_is_an_error() -> None:
    embedder = Embedder(BERT, config=PORTABLE)
    assert "there is no column 'body'; there are id, text" in failure(embed(dataset(1), embedder, column="body"))
    with pytest.raises(ConfigError, match="nowhere"):
        embed(dataset(1), embedder, prompt="nowhere")


def failure(planned: Any) -> str:
    """What a dataset fails with."""
    with pytest.raises(Exception) as raised:
        planned.materialize()
    return f"{raised.value!r} {raised.value}"
