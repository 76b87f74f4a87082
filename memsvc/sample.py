"""The bundled sample store: a made-up team's memories, for trying things out."""

from pathlib import Path

SAMPLE = Path(__file__).with_name("sample.jsonl")
