"""Which forms of times are tried at all."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb

from engine.tabular import times


def test_a_form_is_tried_where_it_reads_half_of_the_values_and_hardly_elsewhere() -> None:
    moments = [datetime(2019, 3, 31, 18, 5, 9, 120_000, UTC), datetime(1994, 11, 2, tzinfo=UTC)]
    forms = [form for form in times._FORMS if "%z" not in form]
    read = ", ".join(f"try_strptime($1, '{form}')" for form in forms)
    with duckdb.connect() as con:
        for form in times._FORMS:
            written = [moment.strftime(form) for moment in moments]
            tried = times._promising([*written, f" {written[0]}", "some day", "", "1"])
            assert form in tried and len(tried) < len(times._FORMS) / 3, form
            if form in times._FORMS[::20]:
                for text in written:
                    found = con.execute(f"SELECT {read}", [text]).fetchall()[0]
                    can = {other for other, moment in zip(forms, found, strict=True) if moment is not None}
                    assert can <= {*times._promising([text])}, text
    assert not times._promising(["The Red Balloon", "Playtime", "2001"])
