"""Downloads into the cache. A file appears there once it is complete and was read, with its checksum next to it.

scikit-learn's `fetch_file` is not used. It has no timeout, follows redirects from https to http, and cannot check a file
before the file gets its final name.
"""

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
from typing import TypeVar

from scoreline.io.files import atomic_file

logger = logging.getLogger("scoreline")

T = TypeVar("T")
BLOCK_BYTES = 1 << 18
ATTEMPTS = 2
PAUSE_SECONDS = 1.0
REPORT_SECONDS = 1.0  # between two progress messages


class _BrokenError(Exception):
    """The transfer failed for a reason that may be temporary, so a second attempt is worthwhile."""


class _RefusedError(ConnectionError):
    """The transfer failed for a permanent reason."""


def cache_folder() -> Path:
    """Return the folder for downloads: SCORELINE_CACHE, or `scoreline` in $XDG_CACHE_HOME or ~/.cache."""
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
    """Fetch a file, read it, and only then give it its name in the cache; return what `read` returned.

    `read` raises ValueError if the file is invalid. `sha256` is the checksum that the file must have, by default
    the one that an earlier download left.
    """
    part = target.with_name(f".{secrets.token_hex(8)}-{target.name}")  # keeps the suffix, which tells `read` the format
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        got, expected = fetch(url, part, timeout), sha256 or _recorded(target)
        if expected is not None and got != expected:
            hint = "" if sha256 else f", as at the first download; if the new one is right, delete {_record(target)}"
            raise ValueError(f"{url} has the SHA-256 {got}, expected {expected}{hint}")
        try:
            result = read(part)
        except ValueError as error:
            raise ValueError(f"{url} is invalid: {str(error).replace(str(part), target.name)}") from error
        _write_record(target, got)  # before the file itself, so that a file never has the checksum of an earlier one
        os.replace(part, target)
    except ConnectionError:
        raise
    except OSError as error:
        why = f"{url} cannot be kept in the cache folder {target.parent} ({error.strerror or error})"
        raise OSError(
            error.errno, f"{why}; set SCORELINE_CACHE to a folder that can be written and has room"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # an error before this one says more
            part.unlink()
    return result


def check_cached(path: Path, sha256: str | None = None) -> None:
    """Raise unless a cached file has the given checksum, and the one recorded when it was first loaded."""
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
    """Return the SHA-256 of a file; raise, with `repair` in the message, if it is not the expected one."""
    with path.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and got != sha256:
        raise ValueError(f"{path} has the SHA-256 {got}, expected {sha256}: it was changed or cut off; {repair}")
    return got


def _record(path: Path) -> Path:
    """Return the file next to `path` that holds its checksum, in the format of sha256sum."""
    return path.with_name(f"{path.name}.sha256")


def _recorded(path: Path) -> str | None:
    try:
        words = _record(path).read_text("utf-8", "replace").split()
    except FileNotFoundError:
        return None
    return words[0] if words else ""


def _write_record(path: Path, sha256: str) -> None:
    with atomic_file(_record(path)) as file:
        file.write(f"{sha256}  {path.name}\n".encode())


def fetch(url: str, path: Path, timeout: float) -> str:
    """Download an address to a file and return its SHA-256; errors of the disk are raised as they are."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url={url!r} must begin with http:// or https://")
    for attempt in range(1, ATTEMPTS + 1):
        digest = hashlib.sha256()
        try:
            with path.open("wb") as file:
                for block in _blocks(url, timeout):
                    digest.update(block)
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())  # or a power cut could leave the final name with an empty file
            return digest.hexdigest()
        except _BrokenError as error:
            if attempt == ATTEMPTS:
                raise ConnectionError(f"{url} could not be fetched in {ATTEMPTS} attempts: {error}") from error
            logger.info("%s: %s; another attempt", url, error)
            time.sleep(PAUSE_SECONDS)
    raise AssertionError("ATTEMPTS is at least 1")


def _blocks(url: str, timeout: float) -> Iterator[bytes]:
    """Yield the body piece by piece; a body that is shorter than announced is an error."""
    request = urllib.request.Request(url, headers={"User-Agent": "scoreline", "Accept-Encoding": "identity"})
    failure = "no answer"
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            failure = "the connection broke"
            if url.startswith("https:") and not response.url.startswith("https:"):
                raise _RefusedError(f"{url} leads to {response.url}, which is not encrypted; nothing was fetched")
            length = response.headers.get("Content-Length") or ""
            total = int(length) if length.isdigit() else None
            done, reported = 0, time.monotonic()
            while block := response.read(BLOCK_BYTES):
                done += len(block)
                if time.monotonic() - reported >= REPORT_SECONDS:
                    reported = time.monotonic()
                    share = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
                    logger.info("%s: %.1f%s", url, done / 1e6, share)
                yield block
            if total is not None and done != total:
                raise _BrokenError(f"{failure} after {done} of {total} bytes")
            logger.info("%s: complete, %.1f MB", url, done / 1e6)
    except _RefusedError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answered {error.code} {error.reason}"
        if error.code >= 500:
            raise _BrokenError(reason) from error
        raise _RefusedError(f"{url} could not be fetched: {reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"{failure} ({getattr(error, 'reason', None) or repr(error)})") from error
