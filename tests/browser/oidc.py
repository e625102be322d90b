"""A provider of sign-in for tests: OpenID Connect with a code and PKCE, as real ones do it, for two people without passwords."""

import base64
import hashlib
import html
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

PEOPLE = {"Anna": "1001", "Ben": "1002"}
CLIENT, SECRET = "seqscope-test", "a client's secret"


class Provider:
    """Serves on a free port until `close`."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self.given: dict[str, dict[str, str]] = {}
        """Code → what was asked for with it, and by whom."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.token(self)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def secrets(self, cookie_secret: str) -> str:
        """What goes into secrets.toml."""
        return (
            f'[auth]\nredirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"\ncookie_secret = "{cookie_secret}"\n'
            f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
            f'server_metadata_url = "{self.issuer}/.well-known/openid-configuration"\n'
        )

    def get(self, request: BaseHTTPRequestHandler) -> None:
        address = urlsplit(request.path)
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/.well-known/openid-configuration":
            _json(
                request,
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/jwks",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                    "code_challenge_methods_supported": ["S256"],
                },
            )
        elif address.path == "/jwks":
            _json(request, {"keys": [self.key.as_dict(private=False)]})
        elif address.path == "/authorize" and asked["client_id"] == CLIENT:
            links = ""
            for name in PEOPLE:
                code = secrets.token_urlsafe(16)
                self.given[code] = {**asked, "person": name}
                back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
                links += f'<p><a href="{html.escape(back)}">{name}</a></p>'
            for name, outcome in (("Cancel", {"error": "access_denied"}), ("Nobody", {"code": "of nobody"})):
                back = f"{asked['redirect_uri']}?{urlencode({**outcome, 'state': asked['state']})}"
                links += f'<p><a href="{html.escape(back)}">{name}</a></p>'
            _answer(request, 200, "text/html", f"<h1>Who are you?</h1>{links}".encode())
        else:
            _answer(request, 204 if address.path == "/favicon.ico" else 404, "text/plain", b"")

    def token(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["content-length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        if sent["code"] not in self.given:
            _answer(request, 400, "application/json", b'{"error": "invalid_grant"}')
            return
        given = self.given.pop(sent["code"])
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == given["code_challenge"]
        assert base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode().startswith(CLIENT)
        claims = {
            "iss": self.issuer,
            "sub": PEOPLE[given["person"]],
            "aud": CLIENT,
            "iat": int(time.time()),
            "exp": int(time.time()) + 600,
            "nonce": given["nonce"],
            "name": given["person"],
        }
        signed = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        _json(request, {"access_token": "none", "token_type": "Bearer", "expires_in": 600, "id_token": signed})


def _json(request: BaseHTTPRequestHandler, value: Any) -> None:
    _answer(request, 200, "application/json", json.dumps(value).encode())


def _answer(request: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    request.send_response(status)
    request.send_header("content-type", kind)
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
