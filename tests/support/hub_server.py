"""A server on this machine that answers as the Hub of Hugging Face does where huggingface_hub asks it.

Repositories are made, files come in one commit without Git LFS, and a snapshot is listed and fetched. Writing needs the
token `TOKEN`. What was asked for is in `asked`.
"""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.server import running

TOKEN = "hf_token_of_the_test"
SHA = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """The repositories by name: whether they are private, and their files."""

    def __init__(self):
        self.repositories, self.private, self.asked = {}, {}, []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": len(content), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                hub.asked.append(("POST", self.path))
                if self.path == "/api/validate-yaml":
                    return self.answer(200, {"errors": [], "warnings": []})
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self.answer(401, {"error": "Invalid username or password."})
                if self.path == "/api/repos/create":
                    facts = json.loads(body)
                    name = f"{facts.get('organization')}/{facts['name']}" if "organization" in facts else facts["name"]
                    if name.startswith("other/"):
                        return self.answer(403, {"error": "You don't have the rights to create a model there."})
                    if name in hub.repositories:
                        return self.answer(409, {"error": "You already created it", "url": self.page(name)})
                    hub.repositories[name] = {}
                    hub.private[name] = facts.get("private", facts.get("visibility") == "private")
                    return self.answer(200, {"url": self.page(name)})
                if asked := re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/main", self.path.partition("?")[0]):
                    files = [one["path"] for one in json.loads(body)["files"]]
                    modes = [{"path": one, "uploadMode": "regular", "shouldIgnore": False} for one in files]
                    return self.answer(200, {"files": modes})
                if asked := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", self.path.partition("?")[0]):
                    for line in map(json.loads, body.splitlines()):
                        if line["key"] == "file":
                            content = base64.b64decode(line["value"]["content"])
                            hub.repositories[asked[1]][line["value"]["path"]] = content
                    url = f"{self.page(asked[1])}/commit/{SHA}"
                    return self.answer(200, {"commitUrl": url, "commitOid": SHA, "success": True})
                return self.answer(404, {"error": "not here"})

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                hub.asked.append((self.command, self.path))
                path = self.path.partition("?")[0]
                if asked := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/main)?", path):
                    files = hub.repositories.get(asked[1])
                    if files is None:
                        return self.answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
                    listed = [{"rfilename": one} for one in files]
                    facts = {"id": asked[1], "modelId": asked[1], "sha": SHA, "siblings": listed, "tags": []}
                    return self.answer(200, facts | {"private": hub.private[asked[1]], "downloads": 0, "likes": 0})
                if asked := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+", path):
                    files = hub.repositories[asked[1]]
                    return self.answer(200, [_entry(name, content) for name, content in files.items()])
                if asked := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
                    content = hub.repositories[asked[1]][asked[2]]
                    etag = f'"{hashlib.sha1(content).hexdigest()}"'
                    return self.answer(200, content, ETag=etag, X_Repo_Commit=SHA)
                return self.answer(404, {"error": "not here"})

            def page(self, name):
                return f"{hub.address}/{name}"

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.running = running(self.server)
        self.running.__enter__()
        return self

    def __exit__(self, *error):
        return self.running.__exit__(*error)


def _entry(name, content):
    return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
