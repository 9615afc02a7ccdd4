"""The operations of the JSON interface, and its description as an OpenAPI document."""

from typing import Any, NamedTuple

import msgspec

from elman import __version__
from elman.serve import answers, questions


class Operation(NamedTuple):
    """A question sent to /api/NAME by POST, and its answers, which are events where it `streams`."""

    question: type[questions.Question]
    answers: tuple[type[msgspec.Struct], ...]
    line: str
    streams: bool = False

    @property
    def name(self) -> str:
        return self.question.__name__.lower()


OPERATIONS = (
    Operation(
        questions.Score,
        (answers.TextScore, answers.MusicScore),
        "Surprisal of every token of a text, or step of a piece.",
    ),
    Operation(questions.Next, (answers.NextWords, answers.NextNotes), "What may follow, with the settings of draws."),
    Operation(
        questions.Generate,
        (answers.Begun, answers.Drawn, answers.DrawnStep, answers.Ended, answers.Broken),
        "Draw a continuation, token by token, as server-sent events; it ends when the client leaves.",
        streams=True,
    ),
    Operation(questions.Components, (answers.Mixed,), "The components of a mixture: weights and predictions by layer."),
    Operation(questions.States, (answers.Trajectory,), "The path of the hidden state, and the spectral radius of J."),
    Operation(questions.Compare, (answers.Compared,), "A text under two runs, word by word."),
    Operation(questions.Neighbours, (answers.Nearest,), "The words nearest to a word."),
    Operation(questions.Pairs, (answers.JudgedPairs,), "Minimal pairs: the more probable sentence of each."),
    Operation(questions.Adapt, (answers.Adapting,), "Let the model learn from the text of a tab, or no longer."),
    Operation(questions.Translate, (answers.Translated,), "The best targets of a source, with attention."),
    Operation(questions.Leave, (answers.Left,), "Forget what is kept for a tab."),
)

PATHS = {
    "/api/runs": ("The runs that are served, and the limits of requests.", answers.Runs),
    "/health": ("Whether the server answers.", None),
    "/metrics": ("Counters as text, in the format of Prometheus.", None),
}

_STATUSES = {
    "400": "the question is wrong",
    "401": "the token is missing or wrong",
    "403": "another site, or another name of the server",
    "408": "the request arrives too slowly",
    "413": "the request is too large",
    "415": "the question is not sent as JSON",
    "429": "too much to do; Retry-After has the seconds to wait",
}


def openapi() -> dict[str, Any]:
    kinds = [one.question for one in OPERATIONS] + [answer for one in OPERATIONS for answer in one.answers]
    kinds += [answers.Runs, answers.Failure]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    refused = {
        status: {"description": line, "content": _content("application/json", [answers.Failure])}
        for status, line in _STATUSES.items()
    }
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        kind = "text/event-stream" if one.streams else "application/json"
        paths[f"/api/{one.name}"] = {
            "post": {
                "operationId": one.name,
                "summary": one.line,
                "requestBody": {"required": True, "content": _content("application/json", [one.question])},
                "responses": {"200": {"description": "the answer", "content": _content(kind, one.answers)}, **refused},
            }
        }
    for path, (line, answer) in PATHS.items():
        content = {} if answer is None else {"content": _content("application/json", [answer])}
        responses = {"200": {"description": "the answer", **content}}
        paths[path] = {"get": {"operationId": path.rsplit("/", 1)[1], "summary": line, "responses": responses}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "elman serve", "version": __version__, "description": questions.__doc__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _content(kind: str, schemas: Any) -> dict[str, Any]:
    named = [{"$ref": f"#/components/schemas/{schema.__name__}"} for schema in schemas]
    return {kind: {"schema": named[0] if len(named) == 1 else {"oneOf": named}}}
