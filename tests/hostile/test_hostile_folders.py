"""Named attacks by folders: headers that lie, links, pipes, permissions, changes while files are open."""

import gc
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hostile_cases import fitted, in_child, rows

from cases import case, copies
from scoreline import MeasureClassifier, load_model
from scoreline.export import to_json
from scoreline.io import convert, open_mapped, read_data, read_libsvm
from scoreline.io.files import PART_NUMBERS, atomic_file
from scoreline.io.sources import Source
from scoreline.solvers import Checkpoint

# ------------------------------------------------------------------------------------------------------ mapped folders


@pytest.fixture(params=["csr", "dense"])
def mapped(request, tmp_path):
    X, y = rows(3000)
    return convert((sp.csr_array(X) if request.param == "csr" else X, y), tmp_path / "mapped")


def largest_file(folder):
    return folder / ("indices.npy" if (folder / "indices.npy").exists() else "X.npy")


def header_of(folder):
    return json.loads((folder / "header.json").read_bytes())


def with_header(folder, **changes):
    (folder / "header.json").write_text(json.dumps(header_of(folder) | changes))


USES = {
    "matvec": lambda X: X.matvec(np.ones(3)),
    "rmatvec": lambda X: X.rmatvec(np.ones(X.shape[0])),
    "rows": lambda X: X.matvec_rows(np.ones(3), np.arange(5)),
    "sums of rows": lambda X: X.rmatvec_rows(np.ones(5), np.arange(5)),
    "blocks": lambda X: list(X.row_blocks(100)),
    "statistics": lambda X: X.column_statistics(),
    "gram": lambda X: X.gram(np.ones(X.shape[0])),
    "row arrays": lambda X: X.row_arrays(0, X.shape[0]),
    "inspect": lambda X: X.inspect(),
}
SOME_ROWS = {
    f"{name} of some rows": lambda X, use=use: use(X.on_rows(np.arange(0, 3000, 97)))
    for name, use in USES.items()
    if name != "inspect"  # which reads X as a whole
}


def test_files_that_change_while_they_are_open_are_noticed(mapped):
    """Was: bus error or segmentation fault. In a process of its own, since it may not survive."""

    def use(folder, change):
        X = open_mapped(folder).X
        for call in (USES | SOME_ROWS).values():
            call(X)
        path = largest_file(folder)
        if change == "shorter":
            os.truncate(path, 200)
        else:
            with path.open("r+b") as file:
                file.seek(160)
                file.write(b"\xff" * 64)
            os.utime(path, ns=(0, 12345))  # the clock of a file system may be too coarse to tell the two writes
        for name, call in (USES | SOME_ROWS).items():
            with case(name), pytest.raises(ValueError, match="was changed while it was open"):
                call(X)
        return 0

    for change, copy in copies(mapped, ["shorter", "other entries"]):
        assert in_child(lambda copy=copy, change=change: use(copy, change)) == 0, change


def test_a_folder_that_is_replaced_stays_readable_where_it_is_open(mapped):
    data = open_mapped(mapped)
    before = data.X.matvec(np.ones(3))
    X, y = rows(3000)
    convert((2.0 * X, y), mapped, overwrite=True)
    assert data.X.matvec(np.ones(3)).tobytes() == before.tobytes()
    assert np.allclose(open_mapped(mapped).X.matvec(np.ones(3)), 2.0 * before)


def test_open_files_are_closed_with_their_operator(mapped):
    data = open_mapped(mapped)
    handles = list(data.X._files.handles)
    for handle in handles:
        os.fstat(handle)
    gc.disable()  # they are not a part of any cycle
    try:
        del data
    finally:
        gc.enable()
    for handle in handles:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)


def test_a_pipe_in_a_folder_is_not_waited_for(mapped):
    for name, copy in copies(mapped, ["header.json", "largest.npy", "labels.npy"]):
        if name != "header.json":
            with_header(copy, files=header_of(copy)["files"] | {name: {"bytes": 0, "crc32": 0}})
        (copy / name).unlink()
        os.mkfifo(copy / name)
        with case(name), pytest.raises(ValueError, match="not a regular file"):
            open_mapped(copy)


def test_a_pipe_in_place_of_an_array_file_is_not_waited_for(tmp_path):
    for suffix in (".npy", ".npz"):
        os.mkfifo(tmp_path / f"rows{suffix}")
        with pytest.raises(ValueError, match="not a regular file"):
            read_data(tmp_path / f"rows{suffix}")


def test_links_to_files_are_followed_and_other_paths_ignored(mapped, tmp_path):
    path = largest_file(mapped)
    path.rename(tmp_path / "elsewhere.npy")
    path.symlink_to(tmp_path / "elsewhere.npy")
    with_header(mapped, files=header_of(mapped)["files"] | {"../../etc/passwd": {"bytes": 1, "crc32": 2}})
    assert open_mapped(mapped).X.shape == (3000, 3)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="is damaged"):
        open_mapped(mapped)


HEADERS = {
    "another storage": {"storage": "../csr"},
    "a shape of floats": {"shape": [3000.0, 3]},
    "a shape of truth values": {"shape": [True, 3]},
    "a negative shape": {"shape": [-3000, 3]},
    "a shape of nothing": {"shape": [0, 0]},
    "2^62 columns": {"shape": [3000, 2**62]},
    "2^63 rows": {"shape": [2**63, 3]},
    "rows beyond all bounds": {"shape": [10**400, 3]},
    "no shape": {"shape": None},
    "version 0": {"version": 0},
    "version -1": {"version": -1},
    "classes of one kind twice": {"classes": [1, 1.0]},
    "classes of two kinds": {"classes": [1, "1"]},
    "classes that are lists": {"classes": [[0], [1]]},
    "classes beyond 64 bits": {"classes": [0, 2**70]},
    "names of other features": {"names": ["a"]},
    "no files": {"files": {}},
    "files that are a list": {"files": []},
    "an encoding of other features": {
        "encoding": {
            "version": 1, "label": None, "labels": [], "rows": 3, "missing": [], "impute": None,
            "columns": [{"name": "a", "kind": "number", "categories": [], "fill": None}],
        }
    },
}  # fmt: skip


def test_headers_of_folders_that_lie_are_refused(mapped):
    for name, copy in copies(mapped, HEADERS):
        with_header(copy, **HEADERS[name])
        with case(name), pytest.raises(ValueError, match=copy.name):
            open_mapped(copy)


def test_arrays_whose_headers_cannot_be_parsed_are_refused(mapped):
    """Was: errors of Python's tokenizer."""
    path, files = mapped / "largest.npy", header_of(mapped)["files"]
    endless = "{'descr': '<f8', 'fortran_order': False, 'shape': (2**70,)}"
    for text in ("{'descr': '''", "a:\n    b\n  c", "(" * 9000, endless):
        raw = text.encode() + b"\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + bytes(24))
        with_header(mapped, files=files | {path.name: {"bytes": path.stat().st_size, "crc32": 0}})
        with case(text), pytest.raises(ValueError, match="mapped is damaged"):
            open_mapped(mapped)


def test_arrays_of_another_number_of_dimensions_are_refused(mapped):
    """Was: taken, and a kernel could not be compiled for them at the first product."""
    for path in mapped.glob("*.npy"):
        array, before, header = np.load(path), path.read_bytes(), (mapped / "header.json").read_bytes()
        np.save(path, array[..., np.newaxis])
        files = json.loads(header)["files"]
        with_header(mapped, files=files | {path.name: {"bytes": path.stat().st_size, "crc32": 0}})
        with pytest.raises(ValueError, match=f"mapped is damaged.*{path.name} has {array.ndim + 1} dimensions"):
            open_mapped(mapped)
        path.write_bytes(before)
        (mapped / "header.json").write_bytes(header)
    assert open_mapped(mapped).X.shape == (3000, 3)


# --------------------------------------------------------------------------------------- links, modes, temporary files


def test_a_link_is_followed_and_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model.npz", tmp_path / "link.npz"
    target.write_bytes(b"old")
    link.symlink_to(target)
    fitted().save(link)
    assert link.is_symlink()
    assert load_model(target).coef_.tobytes() == fitted().coef_.tobytes()
    assert [path.name for path in target.parent.iterdir()] == ["model.npz"]


def test_links_in_place_of_temporary_files_are_not_followed(tmp_path):
    """Was: in a folder that others may write to, a link with the name of our next temporary file chose what we wrote over."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    now = next(PART_NUMBERS)
    for number in range(now, now + 5):
        (tmp_path / f".model.npz.{os.getpid()}.{number}.part").symlink_to(victim)
    fitted().save(tmp_path / "model.npz")
    assert victim.read_bytes() == b"precious"
    load_model(tmp_path / "model.npz")


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path):
    """Was: the file that it leads to was emptied."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".mapped.lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"cannot write .*\.mapped\.lock"):
        convert(rows(), tmp_path / "mapped")
    assert victim.read_bytes() == b"precious"


def test_a_link_in_place_of_an_unfinished_folder_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"precious")
    for end in ("part", "old"):
        (tmp_path / f".mapped.{end}").symlink_to(precious)
        convert(rows(), tmp_path / "mapped", overwrite=True)
        assert (precious / "file").read_bytes() == b"precious"
        assert sorted(os.listdir(tmp_path)) == ["mapped", "precious"]


@pytest.mark.parametrize("there", [True, False])
def test_convert_follows_a_link_to_a_folder(there, tmp_path):
    """Was: the link was replaced, its target kept the old rows, and a hidden link blocked the next conversion."""
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "real", tmp_path / "link"
    X, y = rows()
    if there:
        convert((X, y), target)
    link.symlink_to(target)
    for factor in (2, 3):
        assert convert((factor * X, y), link, overwrite=True) == link
        assert link.is_symlink()
        assert open_mapped(target).X.largest.max() == factor * np.abs(X).max()
    assert sorted(os.listdir(tmp_path)) == ["disk", "link"]
    assert os.listdir(tmp_path / "disk") == ["real"]


def test_a_conversion_that_cannot_be_renamed_restores_the_old_folder(tmp_path, monkeypatch):
    X, y = rows()
    folder = convert((X, y), tmp_path / "mapped")
    really = Path.rename

    def rename(path, target):
        if path.name.endswith(".part"):
            raise PermissionError(13, "not permitted")
        return really(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(PermissionError):
        convert((2 * X, y), folder, overwrite=True)
    assert open_mapped(folder).X.largest.max() == np.abs(X).max()
    assert os.listdir(tmp_path) == ["mapped"]


def test_a_checkpoint_behind_a_link_is_removed_and_the_link_stays(tmp_path):
    target, link = tmp_path / "real.npz", tmp_path / "link.npz"
    link.symlink_to(target)
    written = []
    params = {
        "checkpoint": Checkpoint(link, every=1, seconds=0.0),
        "callbacks": [lambda _: written.append(target.exists())],
    }
    MeasureClassifier(solver_params=params).fit(*rows())
    assert any(written)
    assert link.is_symlink()
    assert not target.exists()


def test_new_files_have_the_mode_that_the_umask_gives(tmp_path):
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        place = tmp_path / f"{mask:o}"
        place.mkdir()
        before = os.umask(mask)
        try:
            fitted().save(place / "model.npz")
            to_json(fitted(), place / "model.json")
            folder = convert(rows(), place / "mapped")
        finally:
            os.umask(before)
        for path in (place / "model.npz", place / "model.json", *folder.iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) == mode, path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~mask


def test_a_replacement_has_the_mode_of_the_old_file(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"")
    (tmp_path / "model.npz").chmod(0o640)
    fitted().save(tmp_path / "model.npz")
    assert stat.S_IMODE((tmp_path / "model.npz").stat().st_mode) == 0o640


def test_what_may_not_be_read_or_written_is_left_alone(tmp_path):
    """As a user without rights: root has them all."""
    clf, model, secret, closed = fitted(), tmp_path / "model.npz", tmp_path / "secret.svm", tmp_path / "closed"
    clf.save(model)
    before = model.read_bytes()
    secret.write_text("1 1:1\n")
    closed.mkdir()
    tmp_path.chmod(0o777)  # the folder may be written to, the files may not
    for path in [*tmp_path.parents][:3]:
        path.chmod(path.stat().st_mode | 0o011)
    model.chmod(0o444)
    secret.chmod(0)
    closed.chmod(0o555)

    def try_all():
        with pytest.raises(PermissionError, match=r"model\.npz: it is write-protected"):
            clf.save(model)
        for read in (read_libsvm, load_model, read_data, lambda path: convert(path, tmp_path / "mapped")):
            with pytest.raises(PermissionError):
                read(secret)
        with pytest.raises(OSError, match="closed"):
            clf.save(closed / "model.npz")
        with pytest.raises(OSError, match="closed"):
            convert(rows(), closed / "mapped")
        return 0

    assert in_child(try_all, uid=65534) == 0
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["closed", "model.npz", "secret.svm"]


class Interrupted(Source):
    """Rows, then Ctrl-C."""

    def blocks(self):
        yield rows()
        raise KeyboardInterrupt

    def width(self):
        return 3, 0


def test_interruptions_leave_no_temporary_files(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert(Interrupted(), tmp_path / "mapped")

    def half():
        with atomic_file(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert list(tmp_path.iterdir()) == []
