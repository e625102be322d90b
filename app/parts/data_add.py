"""Bringing a dataset: what was checked and accepted (app/parts/upload.py) is kept, and its preparation begins."""

from __future__ import annotations

from functools import partial

from app import work, zoo
from app.parts import upload
from app.parts.upload_draft import Draft


def show(owner: str) -> None:
    upload.show(owner, use=partial(_take, owner))


def _take(owner: str, title: str, draft: Draft) -> None:
    fingerprint = draft.checked.fingerprint if draft.checked else ""
    work.take(owner, title, draft.folder, exports=zoo.root(), reading=draft.stored, fingerprint=fingerprint)
