"""A server on this machine that stands for GitHub's API: one repository with a pull request, comments and artifacts.

``gh`` speaks to it as to GitHub: of the host ``github.localhost`` it asks the API by HTTP, here through a proxy.
It knows the calls of ci/example/.github/workflows/quicsat-comment.yml alone, and notes those that it does not know.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"
API = "http://api.github.localhost"


@dataclass
class GitHub:
    """What is at GitHub."""

    repository: str
    pulls: list[dict[str, Any]] = field(default_factory=list)
    """Open pull requests."""
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Those of all pull requests, by number."""
    artifacts: dict[int, dict[str, Path]] = field(default_factory=dict)
    """ZIP archives by the number of a workflow's run, and by name."""
    unknown: list[str] = field(default_factory=list)
    """Calls that have no answer here."""
    tokens: set[str] = field(default_factory=set)
    """What calls have identified themselves with."""
    variables: dict[str, str] = field(default_factory=dict)
    """With them, ``gh`` speaks to this server."""

    def add_pull(self, number: int, owner: str, branch: str, commit: str) -> None:
        """Open a pull request."""
        self.pulls.append({"number": number, "head": {"sha": commit, "label": f"{owner}:{branch}"}})

    def add_comment(self, pull: int, author: str, body: str) -> int:
        """Store a comment on a pull request; its number."""
        number = 100 + len(self.comments)
        self.comments[number] = {"id": number, "pull": pull, "user": {"login": author}, "body": body}
        return number

    def answer(self, method: str, target: str, body: dict[str, Any]) -> object | Path | None:
        """The answer to a call: JSON, a file, or None if there is none."""
        parts = urlsplit(target)
        if parts.path == "/graphql":
            return self._graphql(body)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        base = f"/repos/{self.repository}/"
        path = parts.path.removeprefix(base)
        if (method, path) == ("GET", "pulls"):
            return [each for each in self.pulls if each["head"]["label"] == query["head"] and query["state"] == "open"]
        if found := re.fullmatch(r"actions/runs/(\d+)/artifacts", path):
            return self._listed(int(found[1]))
        if found := re.fullmatch(r"artifacts/(\d+)/(\w+)", path):
            return self.artifacts[int(found[1])][found[2]]
        if method == "GET" and (found := re.fullmatch(r"issues/(\d+)/comments", path)):
            return [each for each in self.comments.values() if each["pull"] == int(found[1])]
        found = re.fullmatch(r"issues/comments/(\d+)", path)
        if found and method == "PATCH":
            self.comments[int(found[1])]["body"] = body["body"]
            return self.comments[int(found[1])]
        return None

    def _listed(self, run: int) -> object:
        base = f"{API}/repos/{self.repository}/artifacts/{run}"
        found = [
            {"id": number, "name": name, "expired": False, "archive_download_url": f"{base}/{name}",
             "size_in_bytes": file.stat().st_size}
            for number, (name, file) in enumerate(self.artifacts.get(run, {}).items())
        ]  # fmt: skip
        return {"total_count": len(found), "artifacts": found}

    def _graphql(self, body: dict[str, Any]) -> object:
        """``gh pr comment`` asks for the pull request by its number, and adds a comment to what it found."""
        query, variables = body["query"], body.get("variables", {})
        if "addComment" in query:
            pull = int(variables["input"]["subjectId"].removeprefix("PR_"))
            number = self.add_comment(pull, BOT, variables["input"]["body"])
            return {"data": {"addComment": {"commentEdge": {"node": {"url": f"{API}/{number}"}}}}}
        if "pullRequest(number:" in query:
            [one] = [each for each in self.pulls if each["number"] == variables["pr_number"]]
            found = {"id": f"PR_{one['number']}", "number": one["number"], "url": f"{API}/pull/{one['number']}"}
            return {"data": {"repository": {"pullRequest": found}}}
        return None


@contextmanager
def github(repository: str) -> Iterator[GitHub]:
    """Such a server, which ends with the block."""
    state = GitHub(repository)

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            state.tokens.add(self.headers.get("Authorization", ""))
            answer = state.answer(self.command, self.path, body)
            if answer is None:
                state.unknown.append(f"{self.command} {self.path} {body}")
            content = answer.read_bytes() if isinstance(answer, Path) else json.dumps(answer).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "application/zip" if isinstance(answer, Path) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _handle  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    state.variables = {"GH_HOST": "github.localhost", "http_proxy": f"http://127.0.0.1:{server.server_port}"}
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
