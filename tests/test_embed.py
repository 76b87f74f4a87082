"""The bundled model: what its vectors are, and what is said when it is not as it should be."""

import json
import shutil
from pathlib import Path

import numpy
import pytest

from memsvc.adapters import onnx_embedder as embed
from memsvc.application.semantic.index_sync import embed_record
from memsvc.configuration.bootstrap import load_embedder
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.vectors import Embedder
from memsvc.core.records import Observation
from memsvc.core.semantic.floor import MIN_KNOWN

PARAPHRASES = (
    ("Customers were billed two times for one order", "Fixed the double charge at checkout"),
    ("the server does not answer quickly enough", "Requests are slow because the cache is cold"),
    ("users cannot sign in any more", "Login fails after the session token expires"),
)
ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t",
    "nul": "a\0b",
    "emoji": "🚀" * 50,
    "no spaces": "x" * 100_000,
    "100 kB": "long text " * 10_000,
    "chinese": "修复登录问题",
    "control": "\x01\x02\ufffe",
    "markup": "[CLS] [SEP] [MASK]",
}


@pytest.fixture(scope="module")
def model() -> Embedder:
    return embed.load_bundled()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model, as a user's own."""
    tokenizer = Path(embed.__file__).parent / "minilm" / "tokenizer.json"
    shutil.copy(tokenizer, tmp_path / "tokenizer.json")
    shutil.copy(embed._bundled_model(), tmp_path / "model.onnx")
    return tmp_path


def load_own(folder: Path) -> Embedder:
    return load_embedder(load_settings({"MEMSVC_MODEL": str(folder)}))


def near(model: Embedder, one: str, other: str) -> float:
    return float(model.embed(one) @ model.embed(other))


def test_the_fingerprint_begins_with_the_dimension(model: Embedder) -> None:
    assert int(model.fingerprint.split("-")[0]) == len(model.embed("a text"))


def test_a_text_always_has_the_same_vector(model: Embedder) -> None:
    assert numpy.array_equal(model.embed("a text"), model.embed("a text"))


@pytest.mark.parametrize(("asked", "meant"), PARAPHRASES)
def test_a_paraphrase_is_nearer_than_what_has_nothing_to_do_with_it(
    model: Embedder, asked: str, meant: str
) -> None:
    others = [title for _, title in PARAPHRASES if title != meant]
    assert near(model, asked, meant) > max(near(model, asked, other) for other in others)


NONSENSE = ("qzxv wplk", "bavo kilumo", "frompy snizzle thrankish", "x9Kq2LmP")


def test_the_words_of_nonsense_are_unknown_and_those_of_questions_known(model: Embedder) -> None:
    assert all(model.known_share(text) < MIN_KNOWN for text in NONSENSE)
    assert all(model.known_share(text) > 2 * MIN_KNOWN for pair in PARAPHRASES for text in pair)
    assert model.known_share("") == 0
    assert model.known_share("fast snizzle") == pytest.approx(4 / 11)


def test_texts_embedded_at_once_have_the_vectors_that_each_has_alone(model: Embedder) -> None:
    texts = [text for pair in PARAPHRASES for text in pair] + ["a", ""]
    found = model.embed_all(texts)
    assert all(
        numpy.allclose(vector, model.embed(text), atol=1e-4)
        for text, vector in zip(texts, found, strict=True)
    )


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_any_text_has_a_vector_of_length_1(model: Embedder, text: str) -> None:
    vector = model.embed(text)
    assert vector.dtype == numpy.float32
    assert numpy.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_record_has_a_vector_of_length_1_for_the_whole_and_each_part(model: Embedder) -> None:
    record = Observation(title="Retry", narrative="word " * 200, files_read=("a.py",))
    vectors = embed_record(model, record)
    assert vectors.shape == (1 + 3, 384)
    assert numpy.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_model_with_one_byte_changed_is_refused_with_a_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "model.onnx"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    monkeypatch.setattr(embed, "_bundled_model", lambda: path)
    with pytest.raises(SemanticUnavailable, match="pip install --force-reinstall") as caught:
        embed.load_bundled()
    assert "model.onnx" in caught.value.detail


def test_a_model_that_is_gone_is_told_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "_bundled_model", lambda: tmp_path / "model.onnx")
    with pytest.raises(SemanticUnavailable, match="cannot be read") as caught:
        embed.load_bundled()
    assert str(tmp_path) in caught.value.detail


def test_a_folder_without_a_model_is_told_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(SemanticUnavailable, match=r"needs model\.onnx and tokenizer\.json"):
        load_own(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_files_that_are_something_else_are_told_what_they_should_be(
    folder: Path, name: str
) -> None:
    (folder / name).write_text("something else")
    with pytest.raises(SemanticUnavailable, match="cannot be loaded") as caught:
        load_own(folder)
    assert "\n" not in caught.value.detail


def test_the_same_files_elsewhere_are_the_same_model(folder: Path, model: Embedder) -> None:
    own = load_own(folder)
    assert own.fingerprint == model.fingerprint
    assert numpy.array_equal(own.embed("a text"), model.embed("a text"))


def test_other_files_are_another_model(folder: Path, model: Embedder) -> None:
    told = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps(told, indent=1), "utf-8")
    assert load_own(folder).fingerprint != model.fingerprint
