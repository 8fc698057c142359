"""Compiles the kernels with numba: `kernel` does so with every function of this package.

Python processes of a cluster come and go, so machine code is kept on disk where that is possible; where it is not (an
archive whose user has no home, read-only folders, a full disk) functions are compiled in memory and nothing fails.

This module alone of the core reads files, and only the core's own sources: numba keeps the code of a caller when what
it takes from another file has changed, functions and constants alike, so the digest of the core's sources is part of
every file's name. Kernels therefore import from the core only.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numba
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for source in _sources(resources.files("headgate.core")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable) -> Iterator[Traversable]:
    """The Python files of a package and of the packages in it, in an order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry


_SOURCES = _digest_of_sources()


class _Files(CompileResultCacheImpl):
    """Names of a function's files, which other sources do not share: what they hold may not even be readable."""

    @property
    def filename_base(self) -> str:
        return f"{super().filename_base}.{_SOURCES}"


class _FilePerKey(IndexDataCacheFile):
    """A file for each signature of a function, so that processes may write at the same time.

    numba numbers the files of a function and lists them in an index: of two processes that compile it for different
    signatures, one may list a file that the other one then fills. Here the name follows from the key, and the file
    says which key it is of.
    """

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._name_of(key), (key, data))  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        try:
            found, data = self._load_data(self._name_of(key))  # type: ignore[no-untyped-call]
        except FileNotFoundError:
            return None
        return data if found == key else None

    def _name_of(self, key: Any) -> str:
        digest = hashlib.sha256(f"{numba.__version__} {key}".encode()).hexdigest()[:16]
        return f"{self._index_name.removesuffix('.nbi')}.{digest}.nbc"


class _Cache(FunctionCache):
    """numba's cache of machine code: a change in any source of the core begins a new one, disk errors never show."""

    _impl_class = _Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _FilePerKey(self._cache_path, self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, pickle.UnpicklingError):
            self.disable()  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form of `function`, divisions unchecked. Never raises for want of a place to keep machine code.

    For functions that make or return arrays: references to arrays are counted, at every call. All others are
    `borrowing` or `inner`: they run up to twice as fast and compile in two thirds of the time.

    Arguments and results carry no types for the checker: numpy's integers inside compiled code are Python's outside.
    """
    return _compiled(function)


def borrowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, without counted references: for functions that neither make nor return arrays.

    Functions over many arrays call each other at no cost; whoever calls the outermost one keeps the arrays alive.
    """
    return _compiled(function, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `borrowing`, for functions that only kernels call: what Python would call is left out, and compiles no more.

    With many arrays that is most of the time that compiling takes.
    """
    return _compiled(function, _nrt=False, no_cpython_wrapper=True)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `inner`, made part of each compiled caller: for the hot path. Each use is compiled again."""
    return _compiled(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Nothing here is called from C, so that no function has a wrapper for it."""
    of_all: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: Any = njit(**of_all, **options)(function)
    try:
        compiled._cache = _Cache(function)
    except (OSError, RuntimeError, ValueError):  # none of numba's locators has a folder: compile in memory
        return compiled
    return compiled
