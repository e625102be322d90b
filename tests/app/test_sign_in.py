"""Every page where the server has sign-in switched on: for who has not signed in, and for an account.

The other tests of pages are those of a server without sign-in.
"""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.own import said

ACCOUNT = {"is_logged_in": True, "iss": "https://provider.example.org", "sub": "1", "name": "Anna"}


@pytest.mark.parametrize("claims", [{}, ACCOUNT], ids=["nobody", "account"])
@pytest.mark.usefixtures("launcher")
def test_every_page_opens(claims: dict[str, object], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.user_info._get_user_info", lambda: claims)
    test = AppTest.from_file(str(root / "app" / "main.py"), default_timeout=60)
    test.secrets["auth"] = {"google": {"client_id": "c"}, "okta": {"client_id": "d"}}
    test.run()
    every = sorted(path.parent.name for path in (root / "app" / "screens").glob("*/page.py"))
    for page in ("compare", "report", "your_data") if claims else every:
        test.switch_page(f"screens/{page}/page.py").run()
        assert not test.exception and not test.error, f"{page}: {said(test)}"
        ways_in = {
            place: [button.label for button in block.button if button.label.startswith("Sign in")]
            for place, block in (("page", test.main), ("sidebar", test.sidebar))
        }
        providers = [] if claims else ["Sign in with google", "Sign in with okta"]
        assert ways_in == {"page": providers if page == "your_data" else [], "sidebar": providers}
