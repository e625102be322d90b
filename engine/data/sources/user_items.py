"""``user-items``: text lines "user item item …", as NGCF and LightGCN publish their splits: one file to train, one to test."""

from __future__ import annotations

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.rows import WORDS, Layout, Mapping, first_row
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.text import inspect
from engine.errors import SeqscopeError


def _open(options: ImportOptions, workshop: Workshop) -> Reading:
    layout = Layout("lists", WORDS, quoting=False, encoding=options.encoding)
    files = (*options.paths, *([options.test] if options.test else []))
    for path in files:
        if path.is_dir():
            raise SeqscopeError(f"{path} is a folder; user-items reads text files. Name the file in it.")
        first_row(inspect(path, options.encoding), layout)  # an empty file is a mistake
    return Reading(LogFiles(files, layout, Mapping(0, 1), tested=1 if options.test else 0))


USER_ITEMS = Source(
    "user-items", "User-items lines",
    "Text lines of a user and all of their items, without order (the form of NGCF and LightGCN)",
    "not stated in the files", 0, _open, sets=True,
)  # fmt: skip
