"""The fields of how data is split, and batches are taken."""

from __future__ import annotations

from engine.project.catalogue import Param
from engine.project.document import DataSetup, Loading
from engine.project.limits import MAX_CLIP, MAX_PREFETCH, MAX_SEED, MAX_TIMEOUT, MAX_WORKERS

_DEFAULT = Loading()
_DATA = DataSetup()
SPLIT = (
    Param(
        "validation_fraction",
        "float",
        _DATA.validation_fraction,
        minimum=0.0,
        maximum=0.9,
        doc="Fraction of the samples held out for validation: the model never trains on them.",
    ),
    Param(
        "stratified",
        "bool",
        _DATA.stratified,
        doc="Keep the share of each class the same in training and validation. Targets that are"
        " numbers are split at random in any case.",
    ),
    Param(
        "split_seed",
        "int",
        _DATA.split_seed,
        minimum=0,
        maximum=MAX_SEED,
        doc="Seed of the split: another seed holds out other samples.",
    ),
)
LOADING = (
    Param(
        "shuffle",
        "bool",
        _DEFAULT.shuffle,
        doc="Take the samples in another order each epoch. Without, each epoch has the same"
        " batches.",
    ),
    Param(
        "balanced",
        "bool",
        _DEFAULT.balanced,
        doc="Draw samples with replacement so that each class comes as often"
        " (WeightedRandomSampler): for classes of unequal size.",
    ),
    Param(
        "drop_last",
        "bool",
        _DEFAULT.drop_last,
        doc="Leave a last batch out that is smaller than the others.",
    ),
    Param(
        "workers",
        "int",
        _DEFAULT.workers,
        optional=True,
        minimum=0,
        maximum=MAX_WORKERS,
        doc="None: batches are indexed from tensors in memory, the fastest way. A number: torch's"
        " DataLoader takes sample by sample, in that many processes (num_workers).",
    ),
)
LOADER = (
    Param(
        "prefetch_factor",
        "int",
        _DEFAULT.prefetch_factor,
        minimum=1,
        maximum=MAX_PREFETCH,
        doc="Batches that each worker process of the DataLoader prepares ahead.",
    ),
    Param(
        "pin_memory",
        "bool",
        _DEFAULT.pin_memory,
        doc="The DataLoader puts batches into page-locked memory: copies to a GPU then run beside"
        " its work. Without a GPU nothing changes.",
    ),
    Param(
        "persistent_workers",
        "bool",
        _DEFAULT.persistent_workers,
        doc="The worker processes stay from epoch to epoch: faster where an epoch is short.",
    ),
    Param(
        "timeout",
        "float",
        _DEFAULT.timeout,
        minimum=0.0,
        maximum=MAX_TIMEOUT,
        doc="Seconds that a batch of a worker may take before the run fails. 0: any time.",
    ),
    Param(
        "start_method",
        "choice",
        _DEFAULT.start_method,
        choices=("default", "fork", "spawn", "forkserver"),
        doc="How worker processes start (multiprocessing_context). default: as Python does on this"
        " system. fork knows classes of the console.",
    ),
    Param(
        "in_order",
        "bool",
        _DEFAULT.in_order,
        doc="Batches come in the order of their samples. Without, a batch comes as soon as one of"
        " several workers has it: faster where samples take unequal time, but no run repeats it,"
        " so it has no train.py and cannot go back to a step.",
    ),
)
GIVEN = (
    Param(
        "sampler",
        "str",
        _DEFAULT.sampler,
        doc="A Sampler of your code, such as a WeightedRandomSampler, or a function of the data set"
        " that makes one: it gives the rows of an epoch in place of shuffle.",
    ),
    Param(
        "batch_sampler",
        "str",
        _DEFAULT.batch_sampler,
        doc="An object of your code that gives the rows of each batch, in place of batch_size,"
        " shuffle and drop_last; or a function of the data set that makes one.",
    ),
    Param(
        "worker_init_fn",
        "str",
        _DEFAULT.worker_init_fn,
        doc="A function of your code that each worker process calls with its number as it starts.",
    ),
    Param(
        "generator",
        "str",
        _DEFAULT.generator,
        doc="A torch.Generator of your code: the order and the workers' seeds are drawn from it,"
        " not from the global one. A run that goes back to a step takes its state back, too.",
    ),
    Param(
        "collate_fn",
        "str",
        _DEFAULT.collate_fn,
        doc="A function of your code that makes a batch of a list of samples. A model of blocks"
        " needs a pair (x, y); its validation data comes without it.",
    ),
)
"""Arguments of the DataLoader that are objects of the user's code; with one of them, a DataLoader
gives the batches."""
PADDING = (
    Param(
        "padding",
        "choice",
        _DEFAULT.padding,
        choices=("none", "right", "left"),
        doc="For samples of different lengths: pads those of a batch to its longest (pad_sequence),"
        " behind or before their own elements. A DataLoader of yours keeps its collate_fn.",
    ),
)
PADDED = (
    Param(
        "padding_value",
        "float",
        _DEFAULT.padding_value,
        minimum=-MAX_CLIP,
        maximum=MAX_CLIP,
        doc="What samples are padded with. Targets that are sequences of classes get -100, which"
        " torch's losses ignore.",
    ),
    Param(
        "gives",
        "choice",
        _DEFAULT.gives,
        choices=("nothing", "lengths", "mask"),
        doc="What a batch has behind its samples: their lengths (B,), or a mask (B, longest) that"
        " is True at real elements. The model gets it as its second argument.",
    ),
)
