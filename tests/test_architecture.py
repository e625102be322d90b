"""docs/architecture.md beside the folders: its tree names all packages, and "Where is …?" leads to where things are defined."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROWS = re.findall(
    r"^\| ([^|`]+) \| `([^`]+)`: ((?:`\w+`(?:, )?)+) \|$", PAGE.split("## Where is …?")[1].split("\n## ")[0], re.M
)


def test_the_tree_names_what_is_there() -> None:
    tree = PAGE.split("## The tree")[1].split("\n## ")[0]
    named = {path.rstrip("/") for path in re.findall(r"\b(?:engine|app|benchmarks)(?:/[\w.]+)*/?", tree)}
    packages = {
        f"{path.parent.relative_to(ROOT)}" for top in ("engine", "app") for path in (ROOT / top).glob("*/__init__.py")
    }
    assert packages <= named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_forty_words_are_answered_and_lead_to_their_definitions() -> None:
    words = [word for word, _, _ in ROWS]
    assert len(words) >= 40 and words == sorted(set(words), key=str.casefold)
    for word, path, names in ROWS:
        defined = {target for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))) for target in _names(node)}
        assert set(re.findall(r"\w+", names)) <= defined, word


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []
