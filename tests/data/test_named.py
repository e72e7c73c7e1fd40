"""Data sets by name, against a server on this machine: what goes wrong on the way leaves no half file and says what to do."""

import bz2
import hashlib
import http.server
import logging
import lzma
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cases import case
from scoreline.io import download, named
from scoreline.io.named import NamedSet, load_named, named_sets

TEXT = b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n"
SETS = (
    NamedSet("small", "small", 5, 3),
    NamedSet("packed", "packed.bz2", 5, 3),
    NamedSet("wide", "wide.xz", 5, 3),
    NamedSet("made", None, 7, 3),
)


class Server:
    """Answers each path by its list of answers, the last one again and again, and counts the requests."""

    def __init__(self):
        self.answers, self.requests, self.quit = {}, [], threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.removeprefix("/sets/")
                outer.requests.append(name)
                answers = outer.answers.get(name, [404])
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                if isinstance(answer, int):
                    return self.send_error(answer)
                if callable(answer):
                    return answer(self)
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                return self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/sets/"

    def close(self):
        self.quit.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give each test an empty cache, a small table, and no way to another machine."""
    for variable in ("SCORELINE_DATA", "XDG_CACHE_HOME", "http_proxy", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("SCORELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(named, "BASE_URL", "http://127.0.0.1:9/nothing/")
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.01)
    for known in SETS:
        monkeypatch.setitem(named.KNOWN, known.name, known)
    return tmp_path / "cache"


def files(folder):
    return sorted(os.listdir(folder)) if folder.exists() else []


def check_small(X, y, width=5):
    assert X.shape == (3, width)
    np.testing.assert_array_equal(X.toarray()[:, :3], [[0.5, 0, 2], [0, 1, 0], [1, 0, 0]])
    assert y.dtype == np.int64
    assert y.tolist() == [1, -1, 1]


def test_download_then_cache(server, cache):
    packed = {"small": TEXT, "packed.bz2": bz2.compress(TEXT), "wide.xz": lzma.compress(TEXT)}
    for file, raw in packed.items():
        name = file.partition(".")[0]
        server.answers[file] = [raw]
        with case(name):
            check_small(*load_named(name, download=True, base_url=server.url))
            assert {file, f"{file}.sha256"} <= set(files(cache))
            assert (cache / f"{file}.sha256").read_text() == f"{hashlib.sha256(raw).hexdigest()}  {file}\n"
            check_small(*load_named(name, download=True, base_url=server.url))
            check_small(*load_named(name))
    assert server.requests == list(packed)
    assert len(files(cache)) == 2 * len(packed)


def test_progress_is_logged(server, caplog, monkeypatch):
    monkeypatch.setattr(download, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(download, "BLOCK_BYTES", 10)
    server.answers["small"] = [TEXT]
    with caplog.at_level(logging.INFO, logger="scoreline"):
        load_named("small", download=True, base_url=server.url)
    messages = [record.getMessage() for record in caplog.records]
    assert any("(37%)" in message for message in messages)
    assert "complete" in messages[-1]


def test_checksum_that_is_asked_for(server, cache):
    server.answers["small"] = [TEXT]
    with pytest.raises(ValueError, match=r"SHA-256 .*, expected 0{64}\. Or get http.*by hand .* under the name small"):
        load_named("small", download=True, base_url=server.url, sha256="0" * 64)
    assert files(cache) == []
    right = hashlib.sha256(TEXT).hexdigest()
    check_small(*load_named("small", download=True, base_url=server.url, sha256=right.upper()))
    with pytest.raises(ValueError, match=r"expected sha256='0{64}'; delete it"):
        load_named("small", sha256="0" * 64)
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        load_named("small", sha256="abc")


def test_changed_file_in_the_cache(server, cache):
    server.answers["small"] = [TEXT]
    load_named("small", download=True, base_url=server.url)
    for other in (TEXT.replace(b"0.5", b"0.7"), TEXT[:-8], b""):
        (cache / "small").write_bytes(other)
        with pytest.raises(ValueError, match=r"changed or cut off; delete it and load it again"):
            load_named("small")
    (cache / "small").unlink()
    check_small(*load_named("small", download=True, base_url=server.url))


def test_later_download_must_agree_with_the_first(server, cache):
    server.answers["small"] = [TEXT, TEXT.replace(b"0.5", b"0.7")]
    load_named("small", download=True, base_url=server.url)
    (cache / "small").unlink()
    with pytest.raises(ValueError, match=r"as at the first download; .* delete .*small\.sha256"):
        load_named("small", download=True, base_url=server.url)
    assert files(cache) == ["small.sha256"]
    (cache / "small.sha256").unlink()
    assert load_named("small", download=True, base_url=server.url)[0][0, 0] == 0.7


def test_file_put_into_the_cache_by_hand_is_trusted_from_then_on(cache):
    cache.mkdir()
    (cache / "packed").write_bytes(TEXT)  # the original, unpacked
    check_small(*load_named("packed"))
    (cache / "packed").write_bytes(TEXT.replace(b"0.5", b"0.7"))
    with pytest.raises(ValueError, match="changed or cut off"):
        load_named("packed")


def announce_more(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(TEXT) + 100))
    handler.end_headers()
    handler.wfile.write(TEXT)


def break_a_chunk(handler):
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"ff\r\n" + TEXT)
    handler.close_connection = True


def test_broken_transfer(server, cache):
    for answer, message, requests in (
        (announce_more, r"2 attempts: the connection broke after 27 of 127 bytes", 2),
        (break_a_chunk, r"2 attempts: the connection broke", 2),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "2 attempts: no answer", 2),
        (lambda handler: None, "2 attempts: no answer", 2),
        (404, "the server answered 404 Not Found", 1),
        (403, "the server answered 403 Forbidden", 1),
        (503, "2 attempts: the server answered 503", 2),
    ):
        server.answers["small"] = [answer]
        server.requests.clear()
        advice = f"Try again later, or get {server.url}small by hand"
        with case((answer, message)):
            with pytest.raises(ConnectionError, match=f"{message}.*{advice}"):
                load_named("small", download=True, base_url=server.url)
            assert files(cache) == []
            assert len(server.requests) == requests


def test_second_attempt(server, cache):
    for first in (500, announce_more):
        server.answers["small"] = [first, TEXT]
        server.requests.clear()
        with case(first):
            check_small(*load_named("small", download=True, base_url=server.url))
            assert len(server.requests) == 2
            assert files(cache) == ["small", "small.sha256"]
        (cache / "small").unlink()


def test_connection_refused(server, cache):
    server.http.socket.close()  # the port is free again
    with pytest.raises(ConnectionError, match=r"no answer \(.*refused.*by hand"):
        load_named("small", download=True, base_url=server.url)
    assert files(cache) == []


def test_slow_server(server, cache):
    for begin in (b"", TEXT[:5]):

        def wait(handler, begin=begin):
            if begin:
                handler.send_response(200)
                handler.end_headers()
                handler.wfile.write(begin)
            server.quit.wait(600)

        server.answers["small"] = [wait]
        with case(begin), pytest.raises(ConnectionError, match=r"timed out.*by hand"):
            load_named("small", download=True, base_url=server.url, timeout=0.2)
        assert files(cache) == []


def test_file_is_not_what_its_name_says(server, cache):
    moved = "small is invalid: small, line 1, column 1: got '<html>Moved"
    for name, body, message in (
        ("small", b"<html>Moved</html>\n", moved),
        ("small", b"", "holds no rows"),
        ("packed.bz2", TEXT, "packed.bz2 cannot be unpacked"),
        ("packed.bz2", bz2.compress(TEXT)[:-6], "packed.bz2 cannot be unpacked"),
        ("wide.xz", lzma.compress(TEXT)[:-6], "wide.xz cannot be unpacked"),
    ):
        server.answers[name] = [body]
        with case((name, body)), pytest.raises(ValueError, match=message):
            load_named(name.split(".")[0], download=True, base_url=server.url)
        assert files(cache) == []


def test_other_numbers_of_rows_or_features_are_read_with_a_warning(server, cache):
    for body, width in ((TEXT[:13], 5), (TEXT.replace(b"3:2", b"6:2"), 6)):
        server.answers["small"] = [body]
        with case(body), pytest.warns(UserWarning, match="small is known with 3 and 5"):
            X, y = load_named("small", download=True, base_url=server.url)
        assert X.shape == (len(y), width)
        for name in files(cache):
            (cache / name).unlink()


def test_interrupted_download_leaves_nothing(server, cache, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    server.answers["small"] = [TEXT]
    for place in ("hashlib.sha256", "os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(f"scoreline.io.download.{place}", interrupt)
            with case(place), pytest.raises(KeyboardInterrupt):
                load_named("small", download=True, base_url=server.url)
        assert files(cache) == []
    check_small(*load_named("small", download=True, base_url=server.url))


def test_two_downloads_at_once(server, cache):
    meet = threading.Barrier(2, timeout=600)

    def answer(handler):
        meet.wait()  # both have found the cache empty
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(TEXT)

    server.answers["small"] = [answer]
    with ThreadPoolExecutor(2) as pool:
        for X, y in pool.map(lambda _: load_named("small", download=True, base_url=server.url), range(2)):
            check_small(X, y)
    assert files(cache) == ["small", "small.sha256"]
    check_small(*load_named("small"))


def test_cache_folder_without_permission(server, cache):
    server.answers["small"] = [TEXT]
    cache.mkdir(mode=0o500)
    if os.access(cache, os.W_OK):
        pytest.skip("root may write everywhere")
    with pytest.raises(PermissionError, match="set SCORELINE_CACHE"):
        load_named("small", download=True, base_url=server.url)


def test_cache_folder_cannot_be_made(server, cache):
    server.answers["small"] = [TEXT]
    cache.write_text("a file")
    with pytest.raises(OSError, match=r"cannot be kept in the cache folder .*; set SCORELINE_CACHE"):
        load_named("small", download=True, base_url=server.url)


def test_full_disk_is_not_taken_for_a_broken_connection(server, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    server.answers["small"] = [TEXT]
    monkeypatch.setattr(download.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device.*has room"):
        load_named("small", download=True, base_url=server.url)
    assert len(server.requests) == 1
    assert files(cache) == []


def test_checksum_that_cannot_be_kept_is_no_error(cache, monkeypatch, caplog):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    cache.mkdir()
    (cache / "small").write_bytes(TEXT)
    monkeypatch.setattr(download.os, "replace", refuse)
    with caplog.at_level(logging.INFO, logger="scoreline"):
        check_small(*load_named("small"))
    assert "could not be kept" in caplog.text
    assert files(cache) == ["small"]


def test_folder_comes_first_and_needs_no_network(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("SCORELINE_DATA", str(tmp_path))
    packed = {
        "small.svm": TEXT,
        "small.svm.xz": lzma.compress(TEXT),
        "small.svm.bz2": bz2.compress(TEXT),
        "small": TEXT,
    }
    for file, raw in packed.items():
        (tmp_path / file).write_bytes(raw)
        with case(file):
            check_small(*load_named("small", download=True))
            check_small(*load_named("small", folder=tmp_path))
            assert files(cache) == []
            with pytest.raises(ValueError, match="replace the file"):
                load_named("small", sha256="0" * 64)
        (tmp_path / file).unlink()


def test_other_names_in_the_folder(tmp_path):
    (tmp_path / "own.svm").write_bytes(b"0.5 1:1\n2 2:1\n")
    (tmp_path / "made.t.svm").write_bytes(TEXT)
    X, y = load_named("own", folder=tmp_path)
    assert X.shape == (2, 2)
    assert y.tolist() == [0.5, 2.0]
    assert load_named("own", folder=tmp_path, n_features=9)[0].shape == (2, 9)
    check_small(*load_named("made.t", folder=tmp_path), width=7)  # as wide as `made`
    assert {"own", "made.t", "a9a"} <= set(named_sets(tmp_path))
    assert "own" not in named_sets()
    assert named_sets(tmp_path) == sorted(named_sets(tmp_path))


def test_not_found(tmp_path, monkeypatch, cache):
    with pytest.raises(
        FileNotFoundError, match=rf"packed\.svm\.xz, .*packed\.bz2, packed\); pass download=True.*{cache}"
    ):
        load_named("packed")
    monkeypatch.setenv("SCORELINE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=rf"not in {tmp_path / 'nowhere'} and {cache}"):
        load_named("small")
    with pytest.raises(FileNotFoundError, match=r"datasets\.md says how to make made\.svm"):
        load_named("made", download=True)
    with pytest.raises(ValueError, match=r"Did you mean 'small'\? A file smal\.svm in .* is found too"):
        load_named("smal", download=True)
    with pytest.raises(ValueError, match="is not a folder"):
        load_named("small", folder=tmp_path / "nowhere")


def test_paths_are_no_names(tmp_path):
    for name in ("../small", "a/b", "/etc/passwd", "..", ".small", "a\\b", "C:small", "a\0", "", 3, None):
        with case(name), pytest.raises(ValueError, match="not a path"):
            load_named(name, folder=tmp_path, download=True)


def test_wrong_arguments():
    for argument, message in (
        ({"timeout": 0}, "timeout=0 must be"),
        ({"n_features": 4}, "n_features=4 must be an integer at least 5"),
        ({"base_url": "file:///etc"}, "must begin with http"),
    ):
        with case(argument), pytest.raises(ValueError, match=message):
            load_named("small", download=True, **argument)


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("SCORELINE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download.cache_folder() == tmp_path / ".cache" / "scoreline"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    assert download.cache_folder() == tmp_path / ".cache" / "scoreline"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert download.cache_folder() == tmp_path / "x" / "scoreline"


def test_redirect_to_an_address_without_encryption_is_refused(monkeypatch, tmp_path):
    class Answer:
        url = "http://elsewhere/small"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(download.urllib.request, "urlopen", lambda *_, **__: Answer())
    with pytest.raises(ConnectionError, match="not encrypted"):
        download.fetch("https://somewhere/small", tmp_path / "file", 30.0)


def test_table():
    table = list(named._known_sets())
    assert len({known.name for known in table}) == len(table)
    published = [known.file for known in table if known.file]
    assert len(set(published)) == len(published)
    for known in table:
        named._check_name(known.name)
        assert known.features > 0
        assert known.rows > 0
        assert known.file is None or known.file.removesuffix(".bz2").removesuffix(".xz") == known.name
    by_name = {known.name: known for known in table}
    assert by_name["a1a.t"] == NamedSet("a1a.t", "a1a.t", 123, 30956)
    assert by_name["w8a.t"] == NamedSet("w8a.t", "w8a.t", 300, 14951)
    assert by_name["ijcnn1.t"] == NamedSet("ijcnn1.t", "ijcnn1.t.bz2", 22, 91701)
    assert by_name["mnist"] == NamedSet("mnist", None, 784, 60000)
