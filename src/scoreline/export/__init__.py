"""Trained classifiers for other programs, as ONNX, SQL or plain JSON. Each export includes the threshold."""

from scoreline.export.as_json import to_json
from scoreline.export.as_onnx import register_with_skl2onnx, to_onnx
from scoreline.export.as_sql import to_sql
from scoreline.export.cards import to_python

__all__ = ["register_with_skl2onnx", "to_json", "to_onnx", "to_python", "to_sql"]
