"""Models by name: the registry, digests checked when one is opened, and downloads that are kept whole or not at all."""

import json
import shutil
import socketserver
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from elman.errors import UserError
from elman.files import sha256_file
from elman.jobs.locks import waiting_for
from elman.tasks.hub import fetched
from elman.tasks.models import registry, store
from elman.tasks.models.registry import Archive, Model
from support.server import serving

FILES = {"recipe.toml": b'title = "small"\n', "model.safetensors": b"weights" * 9000}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(registry.VARIABLE, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def served(tmp_path):
    """A folder with an archive of `FILES`, and their registry."""
    folder = tmp_path / "served"
    folder.mkdir()
    write(folder)
    return folder


def write(folder, files=FILES, *, name="little", **changes):
    """The archive and the registry that a publisher keeps side by side; the registry states the digests of `FILES`."""
    for one, data in FILES.items():
        (folder / one).write_bytes(data)
    digests = {one: sha256_file(folder / one) for one in FILES}
    archive = folder / "little.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for one, data in files.items():
            opened.writestr(f"little/{one}", data)
    found = Archive(("little.zip",), archive.stat().st_size, sha256_file(archive))
    model = Model("Small", "text", 12, "MIT", "nothing", digests, archive=found)
    model = msgspec.structs.replace(model, **changes)
    (folder / "registry.toml").write_text(
        msgspec.toml.encode({name: msgspec.to_builtins(model)}).decode(), encoding="utf-8"
    )
    return model


def message(function, *arguments):
    with pytest.raises(UserError) as error:
        function(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def shown(folder):
    """The names in a folder without those of locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def fetch(source, name="little"):
    return store.fetch(name, registry.require(name, registry.known(str(source))))


def test_a_model_is_fetched_and_opened_by_its_name(served, cache):
    with serving(served) as server:
        folder = fetch(f"{server.url}/registry.toml")
        assert folder == cache / "models" / "little"
        for name, data in FILES.items():
            assert (folder / name).read_bytes() == data
        asked = len(server.asked)
        assert fetch(f"{server.url}/registry.toml") == folder
        assert len(server.asked) == asked + 1  # the registry alone
    assert fetched("little") == folder
    assert store.fetched()["little"].title == "Small"
    assert shown(cache / "models") == ["downloads", "little"]
    assert not shown(cache / "models" / "downloads")


@pytest.mark.parametrize("form", ["path", "file"])
def test_a_registry_may_be_a_file(served, form, monkeypatch):
    path = served / "registry.toml"
    monkeypatch.setenv(registry.VARIABLE, str(path) if form == "path" else path.as_uri())
    assert store.fetch("little", registry.require("little", registry.known())).is_dir()


def test_a_download_that_broke_off_is_continued(served, cache):
    with serving(served) as server:
        server.cut.add("little.zip")
        assert "broken off" in message(fetch, f"{server.url}/registry.toml")
        assert not (cache / "models" / "little").exists()
        part = next((cache / "models" / "downloads").glob("*.part"))
        size = part.stat().st_size
        assert 0 < size < (served / "little.zip").stat().st_size
        server.cut.clear()
        fetch(f"{server.url}/registry.toml")
        assert server.asked[-1] == f"bytes={size}-"


def test_one_process_at_a_time_fetches_a_model(served):
    model = registry.require("little", registry.known(str(served / "registry.toml")))
    with ThreadPoolExecutor(1) as pool:
        with waiting_for(store.place("little")):
            second = pool.submit(store.fetch, "little", model)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
        assert second.result(timeout=30) == store.place("little")


def test_an_archive_of_another_size_or_digest_is_not_kept(served, cache):
    archive = json.loads(json.dumps(msgspec.to_builtins(write(served).archive)))
    for change, found in (({"bytes": archive["bytes"] + 1}, "bytes instead of"), ({"sha256": "0" * 64}, "SHA-256")):
        write(served, archive=msgspec.convert(archive | change, Archive))
        with serving(served) as server:
            assert found in message(fetch, f"{server.url}/registry.toml")
        assert found in message(fetch, served / "registry.toml")
        assert not (cache / "models" / "little").exists()
        assert not shown(cache / "models" / "downloads")


def test_a_server_that_sends_more_than_was_stated_is_left(served, cache):
    """A file handler states no length that could be compared beforehand where the address is changed meanwhile."""
    model = registry.require("little", registry.known(str(served / "registry.toml")))
    with (served / "little.zip").open("ab") as file:
        file.write(b"more" * 50)
    assert "bytes instead of" in message(store.fetch, "little", model)
    assert not (cache / "models" / "little").exists()


def test_a_file_of_the_archive_with_another_digest_is_not_kept(served, cache):
    write(served, FILES | {"recipe.toml": b'title = "other"\n'})
    assert "recipe.toml is not the file of the registry" in message(fetch, served / "registry.toml")
    assert not (cache / "models" / "little").exists()
    assert not [path for path in (cache / "models").iterdir() if path.name.endswith(".tmp")]


def test_an_archive_that_lacks_a_file_is_refused(served, cache):
    write(served, {"recipe.toml": FILES["recipe.toml"]})
    assert "model.safetensors" in message(fetch, served / "registry.toml")
    assert not (cache / "models" / "little").exists()


def test_a_member_cannot_leave_the_folder(served, cache):
    """Members are looked for by their last names and written under the names of the registry."""
    with zipfile.ZipFile(served / "little.zip", "w") as opened:
        for name, data in FILES.items():
            opened.writestr(f"../../{name}", data)
    path = served / "little.zip"
    archive = Archive(("little.zip",), path.stat().st_size, sha256_file(path))
    model = msgspec.structs.replace(registry.known(str(served / "registry.toml"))["little"], archive=archive)
    folder = store.fetch(
        "little", msgspec.structs.replace(model, archive=msgspec.structs.replace(archive, urls=(path.as_uri(),)))
    )
    assert sorted(one.name for one in folder.iterdir()) == sorted([*FILES, store.ENTRY])


def test_a_fetched_model_that_was_altered_is_refused(served):
    folder = fetch(served / "registry.toml")
    (folder / "recipe.toml").write_text("title = 'altered'\n")
    assert "run again: elman models fetch little" in message(fetched, "little")
    fetch(served / "registry.toml")
    assert fetched("little") == folder


def test_a_new_version_takes_the_place_of_the_old_one(served):
    folder = fetch(served / "registry.toml")
    (folder / "report.html").write_text("of the old one")
    write(served, title="Second")
    assert store.entry_of(fetch(served / "registry.toml")).title == "Second"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[little]\ntitle = 1\n", "not a registry"),
        ("little", "not a registry"),
        ("[little]\nx = 1\n", "not a registry"),
    ],
)
def test_a_file_that_is_no_registry(tmp_path, text, found):
    path = tmp_path / "registry.toml"
    path.write_text(text)
    assert found in message(registry.known, str(path))


@pytest.mark.parametrize("name", ["../up", "Upper", "con", "nul.txt", "a:b", "", "dot.", "com1"])
def test_names_that_cannot_be_folders_are_refused(name):
    assert "cannot be the name of a model" in message(registry.require_name, name, "here")


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "a:b", ".hidden", "c?"])
def test_files_that_leave_the_folder_are_refused(served, name):
    text = (served / "registry.toml").read_text().replace('"recipe.toml"', json.dumps(name))
    assert "not a registry" in message(registry.parse, text, "here")


def test_registries_that_cannot_be_read(tmp_path):
    assert "cannot be read" in message(registry.known, str(tmp_path / "none.toml"))
    assert "cannot be fetched" in message(registry.known, "ftp://127.0.0.1/registry.toml")
    with serving(tmp_path) as server:
        assert "HTTP 404" in message(registry.known, f"{server.url}/registry.toml")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("http://127.0.0.1:80a/registry.toml", "cannot be read (nonnumeric port: '80a')"),
        ("http://[::1", "is not an address (Invalid IPv6 URL)"),
        ("http://127.0.0.1:9/ä.toml", "cannot be read ('ascii' codec"),
        ("[::1]:80/registry.toml", "cannot be read (No such file or directory)"),
    ],
)
def test_addresses_that_are_none(source, reason):
    assert reason in message(registry.known, source)


def test_a_server_that_does_not_speak_http():
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(b"220 ready\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert "cannot be read (220 ready)" in message(registry.known, f"http://127.0.0.1:{server.server_address[1]}/x")


def test_an_archive_whose_address_is_none(served):
    archive = Archive(("http://[::1/little.zip",), 1, "0" * 64)
    write(served, archive=archive)
    assert "has an archive whose address is none (Invalid IPv6 URL)" in message(
        registry.known, str(served / "registry.toml")
    )


def test_a_name_of_elman_s_own_is_taken(served):
    write(served, name="shakespeare")
    assert "choose another name" in message(registry.known, str(served / "registry.toml"))


class TestShakespeare:
    """The model that comes with elman."""

    def test_every_file_has_the_digest_of_the_registry(self):
        model = registry.own()["shakespeare"]
        assert store.altered(store.included("shakespeare"), model) is None
        assert {path.name for path in store.included("shakespeare").iterdir()} == set(model.files)

    def test_it_is_copied_into_the_cache(self, cache):
        assert fetched("shakespeare") == cache / "models" / "shakespeare"

    def test_a_damaged_copy_is_made_again(self, cache, capsys):
        folder = fetched("shakespeare")
        (folder / "vocabulary.tsv").write_text("altered")
        assert fetched("shakespeare") == folder
        assert "damaged; it is copied again" in capsys.readouterr().err
        assert store.altered(folder, registry.own()["shakespeare"]) is None

    def test_a_damaged_installation_is_refused(self, tmp_path, monkeypatch):
        shutil.copytree(registry.HERE, tmp_path / "installed")
        monkeypatch.setattr(registry, "HERE", tmp_path / "installed")
        (tmp_path / "installed/shakespeare/model.safetensors").write_bytes(b"altered")
        assert "install elman again" in message(fetched, "shakespeare")

    def test_without_a_cache_it_is_opened_where_it_is(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "file"))
        assert fetched("shakespeare") == store.included("shakespeare")

    def test_a_folder_here_takes_precedence(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "shakespeare").mkdir()
        assert str(fetched("shakespeare")) == "shakespeare"
        assert "the folder of this name is opened" in capsys.readouterr().err

    def test_a_name_that_is_nearly_one(self):
        assert "did you mean shakespeare?" in message(fetched, "shakespear")


REGISTRY = """[small]
title = "t"
kind = "text"
parameters = 5
licence = "x"
data = "d"
[small.archive]
urls = ["a.zip"]
bytes = 10
sha256 = "{digest}"
[small.files]
"{file}" = "{digest}"
"""


@pytest.mark.parametrize(
    ("file", "digest", "message"),
    [
        ("model.json", "0" * 64, "the name of its entry here"),
        ("Model.JSON", "0" * 64, "the name of its entry here"),
        ("evil\\n", "0" * 64, "not a registry"),
        ("a.txt", "0" * 64 + "\\n", "not a registry"),
    ],
)
def test_names_that_no_file_can_have(file, digest, message):
    registry.parse(REGISTRY.format(file="model.safetensors", digest="0" * 64), "here")
    with pytest.raises(UserError, match=message):
        registry.parse(REGISTRY.format(file=file, digest=digest), "here")


def test_a_registry_without_end_is_refused():
    with pytest.raises(UserError, match="has more than 1,048,576 bytes"):
        registry.text_of("/dev/zero")
