"""Files from the web into the cache: whole or not at all, and unchanged from then on."""

import contextlib
import hashlib
import http.client
import logging
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from scoreline.runtime.checks import check_number

logger = logging.getLogger("scoreline")

T = TypeVar("T")
BLOCK = 1 << 18  # bytes that are read at a time
ATTEMPTS = 2
PAUSE = 1.0  # seconds before the second attempt
REPORT = 1.0  # seconds between two messages about progress


class _BrokenError(Exception):
    """The transfer failed in a way that may pass: a second attempt is worth while."""


def fetch(url: str, path: Path, *, timeout: float = 30.0) -> str:
    """Write what an address holds to a file and return its SHA-256.

    The caller gives a temporary path and moves the file once it is content with it; after an error what was written
    stays behind for the caller to remove.

    Parameters
    ----------
    url : str
        An address that begins with http:// or https://.
    path : Path
        The file; it is overwritten.
    timeout : float
        Seconds without a single byte after which the connection counts as broken. A connection that breaks, and an error
        of the server (5xx), get a second attempt; an address that does not exist (4xx) does not.

    Returns
    -------
    str
        The checksum in hexadecimal digits.
    """
    check_number("timeout", timeout, above=0)
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url={url!r} must begin with http:// or https://")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _attempt(url, path, timeout)
        except _BrokenError as error:
            if attempt == ATTEMPTS:
                raise ConnectionError(f"{url} could not be fetched in {ATTEMPTS} attempts: {error}") from error
            logger.info("%s: %s; another attempt", url, error)
            time.sleep(PAUSE)
    raise AssertionError("ATTEMPTS is at least 1")


def cache_folder() -> Path:
    """Return the folder of downloads.

    Returns
    -------
    Path
        SCORELINE_CACHE, or `scoreline` in $XDG_CACHE_HOME or ~/.cache. It need not exist.
    """
    try:
        if own := os.environ.get("SCORELINE_CACHE"):
            return Path(own).expanduser()
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "scoreline"
    except RuntimeError as error:
        raise RuntimeError("there is no home folder for a cache; set SCORELINE_CACHE to a folder") from error


def fetch_into_cache(
    url: str, target: Path, read: Callable[[Path], T], *, sha256: str | None = None, timeout: float = 30.0
) -> T:
    """Fetch a file, read it, and only then give it its name in the cache, with its checksum next to it.

    Parameters
    ----------
    url : str
        The address.
    target : Path
        The file's name in the cache.
    read : callable
        Reads the file at a path and raises ValueError if it is not what it should be.
    sha256 : str, optional
        The checksum it must have; by default the one that an earlier download left, if there was one.
    timeout : float
        As in `fetch`.

    Returns
    -------
    object
        What `read` returned.
    """
    part = target.with_name(f".{secrets.token_hex(8)}-{target.name}")  # with the ending that tells readers the format
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        got, expected = fetch(url, part, timeout=timeout), sha256 or _recorded(target)
        if expected is not None and got != expected:
            hint = "" if sha256 else f", as at the first download; if the new one is right, delete {_record(target)}"
            raise ValueError(f"{url} has the SHA-256 {got}, expected {expected}{hint}")
        try:
            result = read(part)
        except ValueError as error:
            raise ValueError(f"{url} is not what it should be: {str(error).replace(str(part), target.name)}") from error
        _write_record(target, got)  # first, so that no file stands there with the checksum of an earlier one
        os.replace(part, target)
    except ConnectionError:
        raise
    except OSError as error:
        why = f"{url} cannot be kept in the cache folder {target.parent} ({error.strerror or error})"
        raise OSError(
            error.errno, f"{why}; set SCORELINE_CACHE to a folder that can be written and has room"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # what went wrong before says more
            part.unlink()
    return result


def check_cached(path: Path, sha256: str | None = None) -> None:
    """Raise unless a file of the cache has the checksum that is asked for, and that of its first load.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str, optional
        The checksum that is asked for.
    """
    repair = f"delete it and load it again; if it is right, delete {_record(path)} only"
    got = check_sum(path, _recorded(path), repair)
    if sha256 is not None and got != sha256:
        raise ValueError(f"{path} has the SHA-256 {got}, expected sha256={sha256!r}; delete it and load it again")
    if not _record(path).exists():
        try:
            _write_record(path, got)  # put here by hand: trusted from now on
        except OSError as error:
            logger.info("the SHA-256 of %s could not be kept (%s)", path, error)


def check_sum(path: Path, sha256: str | None, repair: str) -> str:
    """Return the SHA-256 of a file, and raise unless it is the expected one, if there is one.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str or None
        The expected checksum.
    repair : str
        What the error tells to do.

    Returns
    -------
    str
        The checksum in hexadecimal digits.
    """
    with path.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and got != sha256:
        raise ValueError(f"{path} has the SHA-256 {got}, expected {sha256}: it was changed or cut off; {repair}")
    return got


def _record(path: Path) -> Path:
    """Return where the checksum of a file stands, in the format of sha256sum."""
    return path.with_name(f"{path.name}.sha256")


def _recorded(path: Path) -> str | None:
    """Return the checksum that was kept of a file, or None."""
    try:
        words = _record(path).read_text("utf-8", "replace").split()
    except FileNotFoundError:
        return None
    return words[0] if words else ""


def _write_record(path: Path, sha256: str) -> None:
    """Keep the checksum of a file."""
    part = path.with_name(f".{secrets.token_hex(8)}.sha256")
    try:
        part.write_text(f"{sha256}  {path.name}\n", "utf-8")
        os.replace(part, _record(path))
    finally:
        part.unlink(missing_ok=True)


def _attempt(url: str, path: Path, timeout: float) -> str:
    """Fetch once; errors of the disk pass through as they are, those of the connection become _BrokenError."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for block in _blocks(url, timeout):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())  # the file gets its final name next, which must not outlive a power cut without it
    return digest.hexdigest()


def _blocks(url: str, timeout: float) -> Iterator[bytes]:
    """Yield the body piece by piece; a body that is shorter than announced is an error."""
    with _answer(url, timeout) as response:
        if url.startswith("https:") and not response.url.startswith("https:"):
            raise ConnectionError(f"{url} leads to {response.url}, which is not encrypted; nothing was fetched")
        length = response.headers.get("Content-Length") or ""
        total = int(length) if length.isdigit() else None
        done, reported = 0, time.monotonic()
        while block := _read(response):
            done += len(block)
            if time.monotonic() - reported >= REPORT:
                reported = time.monotonic()
                share = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
                logger.info("%s: %.1f%s", url, done / 1e6, share)
            yield block
        if total is not None and done != total:
            raise _BrokenError(f"the connection broke after {done} of {total} bytes")
        logger.info("%s: complete, %.1f MB", url, done / 1e6)


def _answer(url: str, timeout: float) -> Any:
    """Return the server's answer, its body still to be read."""
    request = urllib.request.Request(url, headers={"User-Agent": "scoreline", "Accept-Encoding": "identity"})
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code >= 500:
            raise _BrokenError(f"the server answered {error.code} {error.reason}") from error
        raise ConnectionError(f"{url} could not be fetched: the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"no answer ({getattr(error, 'reason', None) or repr(error)})") from error


def _read(response: Any) -> bytes:
    """Return the next piece of the body, empty at its end."""
    try:
        block: bytes = response.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"the connection broke ({error!r})") from error
    return block
