"""``user-item``: text lines "user item", oldest first, as the SASRec and BERT4Rec papers publish their sets."""

from __future__ import annotations

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.rows import WORDS, Layout, Mapping, records
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.text import inspect
from engine.errors import SeqscopeError

LAYOUT = Layout("delimited", WORDS, fields=2, quoting=False)


def _open(options: ImportOptions, workshop: Workshop) -> Reading:
    for path in options.paths:
        if path.is_dir():
            raise SeqscopeError(f"{path} is a folder; user-item reads text files. Name the file in it.")
        for line, fields, _ in records(inspect(path, options.encoding), LAYOUT, width=0):
            if len(fields) != 2:
                raise SeqscopeError(
                    f"{path} line {line} has {len(fields)} fields, not user and item. Rows of one user and many items (as NGCF "
                    "and LightGCN publish) are --source user-items; for other tables use --source table."
                )
            break
    layout = Layout("delimited", WORDS, fields=2, quoting=False, encoding=options.encoding)
    return Reading(LogFiles(options.paths, layout, Mapping(0, 1)))


USER_ITEM = Source(
    "user-item", "User-item lines", "Text lines of user and item, oldest first (the form of the SASRec and BERT4Rec papers)",
    "not stated in the files", 0, _open,
)  # fmt: skip
