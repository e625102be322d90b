"""Catalogues and logs that visitors bring: read, guessed, mapped, checked. No Streamlit in here.

    from app.uploads import files
    from app.uploads.limits import UploadLimits

    limits = UploadLimits.of_environment()
    files.keep(folder, "catalogue", upload, limits)             bytes as they came
    files.unpack(folder, "catalogue", KINDS, limits)            where `files.is_archive`: what is in a ZIP takes its place
    guess = files.guess(folder, "catalogue", limits)            Guess: how to read them, how sure that is (reading.py)
    reading = guess.reading.with_role("name", "title")          … changed by the visitor
    checked = files.check(folder, {"catalogue": reading}, limits)  CheckResult: findings, counts, what would be left out
    files.accept(folder, checked, without_bad_rows=True)        clean/items.parquet, clean/log.parquet

Nothing of a file is parsed in the process of the app: guess and check run a child (child.py) with limits of its own, and whatever
becomes of it ends in an answer or one message (runner.py). `folder` is a dataset's own (app/home.py), or one that is staged.
"""

from collections.abc import Callable

OnProgress = Callable[[float, str], None]
"""Takes how far a step is, 0 to 1, and what it does."""
