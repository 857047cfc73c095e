"""Programs of torch.export as ONNX."""

from __future__ import annotations

import onnx
import torch

from .jobs import Converted, ConvertJob

BATCH = "batch"


def convert(job: ConvertJob) -> Converted:
    program = torch.export.load(job.source)
    made = torch.onnx.export(
        program,
        (),
        output_names=job.outputs or None,
        opset_version=job.opset or None,
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    assert made is not None
    made.save(job.path)
    model = onnx.load(job.path)
    _name_batch(model)
    for node in model.graph.node:  # they would tell the paths of this machine's files
        kept = [p for p in node.metadata_props if p.key != "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, job.path)
    return Converted(next(each.version for each in model.opset_import if not each.domain))


def _name_batch(model: onnx.ModelProto) -> None:
    """Let the axis that torch has numbered be called batch: no other axis is dynamic."""
    symbols = {
        axis.dim_param
        for value in model.graph.input
        for axis in value.type.tensor_type.shape.dim
        if axis.dim_param
    }
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param in symbols:
                axis.dim_param = BATCH
