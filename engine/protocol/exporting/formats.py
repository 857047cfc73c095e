"""The formats of an export: what they hold, who reads them, and the Python that does."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

Format = Literal[
    "pt", "safetensors", "checkpoint", "dcp", "hf",
    "py", "script", "onnx", "pt2", "torchscript-trace", "torchscript-script", "zip",
]  # fmt: skip
Dtype = Literal["", "float16", "bfloat16", "float64"]
"""The dtype to which numbers with a fraction are cast; "" leaves them as they are."""
DTYPES: tuple[str, ...] = get_args(Dtype)[1:]
KEEPING: dict[Format, str] = {
    "checkpoint": "as they are: the run goes on bit for bit",
    "py": "none: the file has no weights",
    "script": "as they are: training rounds on its own, by autocast",
}
"""The formats that have no dtype, and why."""
CASTING: tuple[Format, ...] = tuple(key for key in get_args(Format) if key not in KEEPING)
OPSETS = range(18, 24)
"""The versions of ONNX's operators that torch's exporter writes."""

SHARD_BYTES = 5_000_000_000
"""The most bytes of one file of a state_dict: a larger one is written in parts, as the Hub does."""

_MODEL = "model = ...  # made as it was before training\n"


class FormatRow(Struct, frozen=True):
    """`suffix` is "" for a folder. `files` are the names that are written, with {name} for what is
    chosen. `batch`: it is written from a run of the model on a batch."""

    key: Format
    group: Literal["Weights", "Programs"]
    title: str
    words: str
    readers: str
    suffix: str
    files: tuple[str, ...]
    lines: str
    batch: bool = False

    @property
    def is_folder(self) -> bool:
        return not self.suffix

    def load_lines(self, path: str) -> str:
        """The Python that loads what lies at `path`."""
        return _named(self.lines, path)

    def file_names(self, path: str) -> tuple[str, ...]:
        """The files that are written for `path`."""
        return tuple(_named(name, path) for name in self.files)


def _named(text: str, path: str) -> str:
    name = PurePath(path)
    return text.replace("{name}", name.name).replace("{stem}", name.stem)


FORMATS: dict[Format, FormatRow] = {
    row.key: row
    for row in (
        FormatRow(
            key="pt", group="Weights", title="state_dict (.pt)",
            words="Every parameter and buffer by its name, as torch.save writes it. The usual file:"
            " your code makes the model, and loads the tensors into it.",
            readers="PyTorch, any version since 1.6", suffix=".pt", files=("{name}",),
            lines=f'import torch\n\n{_MODEL}state = torch.load("{{name}}", weights_only=True)\n'
            "model.load_state_dict(state)",
        ),
        FormatRow(
            key="safetensors", group="Weights", title="safetensors",
            words="The same tensors in a file that cannot run code and is read without copying. A"
            " tensor under two names is written once, as save_model does.",
            readers="PyTorch, JAX, Rust, Hugging Face: all that have safetensors",
            suffix=".safetensors", files=("{name}",),
            lines=f"from safetensors.torch import load_model  # pip install safetensors\n\n{_MODEL}"
            'load_model(model, "{name}")',
        ),
        FormatRow(
            key="checkpoint", group="Weights", title="Checkpoint of the run",
            words="All that the run needs to go on bit for bit: weights, the optimizer's state,"
            " random numbers, the place in the data, the figures so far. Without a run it is that"
            " of step 0.",
            readers="Tensor Lab; PyTorch, as a dict", suffix=".pt", files=("{name}",),
            lines=f'import torch\n\n{_MODEL}saved = torch.load("{{name}}", weights_only=True)\n'
            'model.load_state_dict(saved["model"])\n'
            'optimizer.load_state_dict(saved["optimizer"])',
        ),
        FormatRow(
            key="dcp", group="Weights", title="Distributed checkpoint (folder)",
            words="A folder of torch.distributed.checkpoint: each process of a larger run reads its"
            " own part of it, with any number of processes.",
            readers="PyTorch: FSDP, DDP, torchtitan", suffix="",
            files=("{name}/.metadata", "{name}/__0_0.distcp"),
            lines=f"import torch.distributed.checkpoint as dcp\n\n{_MODEL}"
            'state = {"model": model.state_dict()}\n'
            'dcp.load(state, checkpoint_id="{name}")\nmodel.load_state_dict(state["model"])',
        ),
        FormatRow(
            key="hf", group="Weights", title="Hugging Face folder",
            words="config.json and model.safetensors, as the Hub has them; above 5 GB in parts with"
            " an index.",
            readers="Hugging Face Hub and its tools", suffix="",
            files=("{name}/config.json", "{name}/model.safetensors"),
            lines=f"from safetensors.torch import load_model  # pip install safetensors\n\n{_MODEL}"
            'load_model(model, "{name}/model.safetensors")',
        ),
        FormatRow(
            key="py", group="Programs", title="Python of the model",
            words="The model of blocks as a class of torch.nn, as the Code tab shows it, without"
            " its weights.",
            readers="Python with PyTorch", suffix=".py", files=("{name}",),
            lines="from {stem} import Model\n\nmodel = Model()",
        ),
        FormatRow(
            key="script", group="Programs", title="Training script",
            words="The training as a plain script. The first weights lie beside it, with the data"
            " of a model of blocks. For your own module, it imports your file, or it has the cells"
            " that make the module and its data.",
            readers="Python with PyTorch and NumPy", suffix=".py",
            files=("{name}", "{stem}.data.pt"),
            lines="# in a terminal\npython {name} --out weights.pt",
        ),
        FormatRow(
            key="onnx", group="Programs", title="ONNX",
            words="The operations of one run on your batch, for runtimes without Python. The number"
            " of samples stays free. Branches that depend on numbers cannot be written.",
            readers="ONNX Runtime, TensorRT, OpenVINO, Netron", suffix=".onnx", files=("{name}",),
            lines="import onnxruntime  # pip install onnxruntime\n\n"
            'session = onnxruntime.InferenceSession("{name}")\n'
            "outputs = session.run(None, {session.get_inputs()[0].name: x.numpy()})",
            batch=True,
        ),
        FormatRow(
            key="pt2", group="Programs", title="torch.export (.pt2)",
            words="The operations of one run on your batch as PyTorch's own program, weights"
            " included: it runs and trains without your code, but has no backward of a"
            " torch.autograd.Function. The number of samples stays free.",
            readers="PyTorch 2, AOTInductor, ExecuTorch", suffix=".pt2", files=("{name}",),
            lines='import torch\n\nprogram = torch.export.load("{name}")\n'
            "output = program.module()(x)",
            batch=True,
        ),
        FormatRow(
            key="torchscript-trace", group="Programs", title="TorchScript, traced (deprecated)",
            words="The operations of one run on your batch, for C++ and old programs. A branch is"
            " written as your batch took it, without a word. torch calls TorchScript deprecated.",
            readers="PyTorch in Python and C++ (LibTorch)", suffix=".pt", files=("{name}",),
            lines='import torch\n\nmodel = torch.jit.load("{name}")\noutput = model(x)',
            batch=True,
        ),
        FormatRow(
            key="torchscript-script", group="Programs", title="TorchScript, scripted (deprecated)",
            words="The Python of forward() itself, compiled: branches and loops stay. It takes a"
            " part of Python only. torch calls TorchScript deprecated.",
            readers="PyTorch in Python and C++ (LibTorch)", suffix=".pt", files=("{name}",),
            lines='import torch\n\nmodel = torch.jit.load("{name}")\noutput = model(x)',
            batch=True,
        ),
        FormatRow(
            key="zip", group="Programs", title="Package (.zip)",
            words="Code, weights, requirements, a README and run.py in one archive, which runs"
            " where there is nothing but PyTorch. A module of the console has no file of code: its"
            " package holds model.pt2.",
            readers="Anyone with Python and PyTorch", suffix=".zip", files=("{name}",),
            lines="# in a terminal\nunzip {name} -d {stem}\npython {stem}/run.py",
            batch=True,
        ),
    )
}  # fmt: skip


def row_of(format: Format, in_parts: bool = False) -> FormatRow:
    """The row of a format; `in_parts`: of one that is written in several files."""
    row = FORMATS[format]
    if format != "hf" or not in_parts:
        return row
    return replace(
        row,
        files=(
            "{name}/config.json",
            "{name}/model-00001-of-….safetensors",
            "{name}/model.safetensors.index.json",
        ),
        lines="from pathlib import Path\n\n"
        f"from safetensors.torch import load_model  # pip install safetensors\n\n{_MODEL}"
        'for part in Path("{name}").glob("model-*.safetensors"):\n'
        "    load_model(model, part, strict=False)  # a part has some of the tensors",
    )
