"""What does not fit is marked where it stands: the picture of each call that torch refuses."""

from __future__ import annotations

import pytest

from engine.protocol import FailedOperands
from tests.engine.tensors.paragraphs import paragraphs

REFUSED = """
x.view(5, -1)
    elements [0 1] x has 12 elements, not a multiple of 5.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=5! 1=-1 (12 is not a multiple of 5) wrong note
x.view(7)
    elements [0 1] x has 12 elements, but 7 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=7! (7 elements) wrong note
x.view(2, 7)
    elements [0 1] x has 12 elements, but 14 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=2! 1=7! (2 · 7 = 14 elements) wrong note
x.view(-1, -1)
    elements [0 1] torch infers one size only: more than one is -1.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=-1! 1=-1! (only one -1) wrong note
x.T.view(-1)
    elements [0 1] view() cannot copy, and no strides describe this shape in the order of x.T.
    x.T: 0=4 1=3 (12 elements)
    strides: 0=1! 1=4! (not C order)
    asked for: 0=-1
images.permute(0, 2, 1, 3).view(2, -1)
    elements [0 1 2 3] view() cannot copy, and no strides describe this shape in the order of
        images.permute(0, 2, 1, 3).
    images.permute(0, 2, 1, 3): 0=2 1=28 2=3 3=28 (4,704 elements)
    strides: 0=2352 1=28! 2=784! 3=1 (not C order)
    asked for: 0=2 1=-1
x[:1, ::2].view(4)
    elements [0 1] x[:1, ::2] has 2 elements, but 4 were asked for.
    x[:1, ::2]: 0=1 1=2 (2 elements) wrong note
    asked for: 0=4! (4 elements) wrong note
x.split([1, 1])
    elements [0 1] The pieces add up to 2, but dim 0 has 3.
    x: 0=3! 1=4
    pieces: 0=1! 1=1! (sum 2) wrong note
x.split([3, 2], dim=1)
    elements [0 1 2] The pieces add up to 5, but dim 1 has 4.
    x: 0=3 1=4!
    pieces: 1=3! 2=2! (sum 5) wrong note
x.permute(0, 0)
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0 1=0!
x.permute(0)
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0!
x.permute(0, 2)
    dimension [0 1 2] x has no dim 2: it has 2 dimensions.
    x: 0=3 1=4
    dim: 2=2!
x.permute(1, 0, 2)
    dimension [0 1 2] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=1 1=0 2=2!
x.permute(dims=(0, 0))
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0 1=0!
x.sum(2)
    dimension [0 1 2] x has no dim 2: it has 2 dimensions.
    x: 0=3 1=4
    dim: 2=2!
x.sum(-3)
    dimension [-3 -2 -1] x has no dim -3: it has 2 dimensions.
    x: -2=3 -1=4
    dim: -3=-3!
x.unsqueeze(-4)
    dimension [-4 -3 -2 -1] x has no dim -4: it has 2 dimensions.
    x: -2=3 -1=4
    dim: -4=-4!
x.sum(100)
    dimension [0 1 2] x has no dim 100: it has 2 dimensions.
    x: 0=3 1=4
    dim: 2=100!
torch.ones(3).sum(5)
    dimension [0 1 2 3 4 5] torch.ones(3) has no dim 5: it has 1 dimension.
    torch.ones(3): 0=3
    dim: 5=5!
x[:, 9]
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 9 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=: 1=9!
x[0, 0, 0]
    index [0 1 2] x has 2 dimensions, but 3 are indexed.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=0 1=0 2=0!
x[-4]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: -4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=-4!
x[..., 4]
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 1=4!
x[None, 3]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 3 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=3!
x[True, 3]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 3 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=3!
x[[0, -4]]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: -4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=-4…0!
x[[5, 5]]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=5!
x[torch.tensor([1, 5])]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=1…5!
x[[0, 1], [0, 7]]
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 7 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=0…1 1=0…7!
x[torch.ones(4).bool()]
    index [0 1] A mask has a truth value for each element that it covers: (4,) does not fit.
    x: 0=3! 1=4
    torch.ones(4).bool(): 0=4!
x[:, torch.ones(3).bool()]
    index [0 1] A mask has a truth value for each element that it covers: (3,) does not fit.
    x: 0=3 1=4!
    torch.ones(3).bool(): 1=3!
x[torch.ones(3, 3).bool()]
    index [0 1] A mask has a truth value for each element that it covers: (3, 3) does not fit.
    x: 0=3 1=4!
    torch.ones(3, 3).bool(): 0=3 1=3!
images[0, torch.ones(3, 7).bool()]
    index [0 1 2 3] A mask has a truth value for each element that it covers: (3, 7) does not fit.
    images: 0=2 1=3 2=28! 3=28
    torch.ones(3, 7).bool(): 1=3 2=7!
x.select(1, 4)
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=: 1=4!
x.index_select(1, torch.tensor([0, 4]))
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=: 1=0…4!
x[:0][0]
    index [0 1] Dim 0 of x[:0] has 0 elements, numbered none: 0 is not one of them.
    x[:0]: 0=0 1=4
    numbered: 0=none 1=0…3
    index: 0=0!
x[0] = torch.ones(7)
    broadcast [-1] At dim -1, counted from the right, picked has 4, torch.ones(7) has 7: neither
        is 1.
    picked: -1=4!
    torch.ones(7): -1=7!
x[[0, 1]] = torch.ones(3, 4)
    broadcast [-2 -1] At dim -2, counted from the right, picked has 2, torch.ones(3, 4) has 3:
        neither is 1.
    picked: -2=2! -1=4
    torch.ones(3, 4): -2=3! -1=4
x[x > -1] = torch.ones(5)
    broadcast [-1] At dim -1, counted from the right, picked has 12, torch.ones(5) has 5:
        neither is 1.
    picked: -1=12!
    torch.ones(5): -1=5!
x.gather(0, torch.zeros(3, 9).long())
    index [dim 1] Except along dim 0, the index must not be larger than x.
    x: dim=3 1=4!
    torch.zeros(3, 9).long(): dim=3 1=9!
x.gather(1, torch.tensor([[4]]))
    index [0 dim] Dim 1 of x has 4 elements: the index holds 4.
    x: 0=3 dim=4! (numbered 0…3)
    torch.tensor([[4]]): 0=1 dim=1 (holds 4) wrong note
x.gather(1, torch.tensor([[-1]]))
    index [0 dim] Dim 1 of x has 4 elements: the index holds -1. In gather a negative index does
        not count from the end.
    x: 0=3 dim=4! (numbered 0…3)
    torch.tensor([[-1]]): 0=1 dim=1 (holds -1) wrong note
x.gather(-1, torch.tensor([[4]]))
    index [0 dim] Dim 1 of x has 4 elements: the index holds 4.
    x: 0=3 dim=4! (numbered 0…3)
    torch.tensor([[4]]): 0=1 dim=1 (holds 4) wrong note
x.gather(1, torch.tensor([1]))
    index [0 1] The index must have as many dimensions as the tensor.
    x: 0=3 1=4
    torch.tensor([1]): 0=1!
x.scatter(0, torch.tensor([[1, 3]]), 1.0)
    index [dim 1] Dim 0 of x has 3 elements: the index holds 1…3.
    x: dim=3! 1=4 (numbered 0…2)
    torch.tensor([[1, 3]]): dim=1 1=2 (holds 1…3) wrong note
F.embedding(torch.tensor([0, 3]), x)
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 3 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=0…3!
x + torch.ones(3)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3): -1=3!
torch.ones(2, 1, 3) + images
    broadcast [-4 -3 -2 -1] At dim -1, counted from the right, torch.ones(2, 1, 3) has 3, images
        has 28: neither is 1.
    torch.ones(2, 1, 3): -3=2! -2=1 -1=3!
    images: -4=2 -3=3! -2=28 -1=28!
x.add_(torch.ones(2, 3, 4))
    broadcast [-3 -2 -1] At dim -3, counted from the right, x has no such dimension: a tensor
        written in place is not stretched.
    x: -3=·! -2=3 -1=4
    torch.ones(2, 3, 4): -3=2 -2=3 -1=4
torch.ones(3, 1).add_(torch.ones(4, 2))
    broadcast [-2 -1] At dim -2, counted from the right, torch.ones(3, 1) has 3, torch.ones(4,
        2) has 4: neither is 1.
    torch.ones(3, 1): -2=3! -1=1
    torch.ones(4, 2): -2=4! -1=2
torch.ones(1, 4).add_(x)
    broadcast [-2 -1] At dim -2, counted from the right, torch.ones(1, 4) has 1: a tensor
        written in place is not stretched.
    torch.ones(1, 4): -2=1! -1=4
    x: -2=3 -1=4
torch.addcmul(x, torch.ones(5), torch.ones(6))
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(5) has 5,
        torch.ones(6) has 6: none is 1.
    x: -2=3 -1=4!
    torch.ones(5): -1=5!
    torch.ones(6): -1=6!
torch.where(x > 0, torch.ones(3), x)
    broadcast [-2 -1] At dim -1, counted from the right, x > 0 has 4, torch.ones(3) has 3, x has
        4: none is 1.
    x > 0: -2=3 -1=4!
    torch.ones(3): -1=3!
    x: -2=3 -1=4!
x.expand(2, 3, 8)
    broadcast [-3 -2 -1] At dim -1, counted from the right, x has 4: only a 1 can be stretched.
    x: -2=3 -1=4!
    asked for: -3=2 -2=3 -1=8!
x.expand(4)
    broadcast [-2 -1] At dim -2, counted from the right, x has 3: only a 1 can be stretched.
    x: -2=3! -1=4
    asked for: -1=4
x.expand(-1, 5)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4: only a 1 can be stretched.
    x: -2=3 -1=4!
    asked for: -2=-1 -1=5!
x.expand(5, -1)
    broadcast [-2 -1] At dim -2, counted from the right, x has 3: only a 1 can be stretched.
    x: -2=3! -1=4
    asked for: -2=5! -1=-1
torch.cat([x, x.T], 1)
    join [0 joined] All sizes except those of dim 1 must be equal, but they differ in dim 0.
    x: 0=3! joined=4
    x.T: 0=4! joined=3
torch.cat([x, x.T])
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    x: joined=3 1=4!
    x.T: joined=4 1=3!
torch.cat([x, torch.ones(2)])
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    x: joined=3 1=4!
    torch.ones(2): joined=2
torch.cat([torch.ones(0), x, x.T])
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    torch.ones(0): joined=0
    x: joined=3 1=4!
    x.T: joined=4 1=3!
torch.cat([images, torch.ones(2, 5, 8, 28)], dim=-1)
    join [0 1 2 joined] All sizes except those of dim 3 must be equal, but they differ in dims 1, 2.
    images: 0=2 1=3! 2=28! joined=28
    torch.ones(2, 5, 8, 28): 0=2 1=5! 2=8! joined=28
torch.stack([x, m, x.T])
    join [0 1] All shapes must be equal, but they differ in dims 0, 1.
    x: 0=3! 1=4!
    m: 0=3! 1=4!
    x.T: 0=4! 1=3!
torch.stack([x, torch.ones(3, 5)])
    join [0 1] All shapes must be equal, but they differ in dim 1.
    x: 0=3 1=4!
    torch.ones(3, 5): 0=3 1=5!
x @ x
    product [rows inner columns] The inner dimension must have one size: x has 4, x has 3.
    x: rows=3 inner=4!
    x: inner=3! columns=4
torch.ones(2, 5, 6).bmm(torch.ones(3, 6, 7))
    product [batch rows inner columns] A batch dimension must have one size: torch.ones(2, 5, 6)
        has 2, torch.ones(3, 6, 7) has 3.
    torch.ones(2, 5, 6): batch=2! rows=5 inner=6
    torch.ones(3, 6, 7): batch=3! inner=6 columns=7
torch.ones(2, 5, 6).bmm(torch.ones(2, 5, 7))
    product [batch rows inner columns] The inner dimension must have one size: torch.ones(2, 5,
        6) has 6, torch.ones(2, 5, 7) has 5.
    torch.ones(2, 5, 6): batch=2 rows=5 inner=6!
    torch.ones(2, 5, 7): batch=2 inner=5! columns=7
torch.ones(2, 5, 6) @ torch.ones(3, 6, 7)
    product [batch rows inner columns] A batch dimension must have one size: torch.ones(2, 5, 6)
        has 2, torch.ones(3, 6, 7) has 3.
    torch.ones(2, 5, 6): batch=2! rows=5 inner=6
    torch.ones(3, 6, 7): batch=3! inner=6 columns=7
torch.ones(2, 1, 5, 6) @ torch.ones(3, 2, 7)
    product [batch batch rows inner columns] The inner dimension must have one size:
        torch.ones(2, 1, 5, 6) has 6, torch.ones(3, 2, 7) has 2.
    torch.ones(2, 1, 5, 6): batch=2 batch=1 rows=5 inner=6!
    torch.ones(3, 2, 7): batch=3 inner=2! columns=7
torch.ones(3) @ x.T
    product [inner columns] The inner dimension must have one size: torch.ones(3) has 3, x.T has 4.
    torch.ones(3): inner=3!
    x.T: inner=4! columns=3
x.mv(torch.ones(3))
    product [rows inner] The inner dimension must have one size: x has 4, torch.ones(3) has 3.
    x: rows=3 inner=4!
    torch.ones(3): inner=3!
torch.ones(3).dot(torch.ones(4))
    product [inner] The inner dimension must have one size: torch.ones(3) has 3, torch.ones(4)
        has 4.
    torch.ones(3): inner=3!
    torch.ones(4): inner=4!
torch.addmm(torch.ones(4), x, x)
    product [rows inner columns] The inner dimension must have one size: x has 4, x has 3.
    x: rows=3 inner=4!
    x: inner=3! columns=4
torch.addmv(torch.ones(3), x, torch.ones(3))
    product [rows inner] The inner dimension must have one size: x has 4, torch.ones(3) has 3.
    x: rows=3 inner=4!
    torch.ones(3): inner=3!
torch.baddbmm(torch.ones(1), torch.ones(2, 5, 6), torch.ones(2, 5, 7))
    product [batch rows inner columns] The inner dimension must have one size: torch.ones(2, 5,
        6) has 6, torch.ones(2, 5, 7) has 5.
    torch.ones(2, 5, 6): batch=2 rows=5 inner=6!
    torch.ones(2, 5, 7): batch=2 inner=5! columns=7
torch.einsum('ij,kj', x, x.T)
    product [k i j] The letter j must have one size: x has 4, x.T has 3.
    x: i=3 j=4!
    x.T: k=4 j=3!
torch.einsum('ij,jk,kl->il', x, x.T, x.T)
    product [i j k l] The letter k must have one size: x.T has 3, x.T has 4.
    x: i=3 j=4
    x.T: j=4 k=3!
    x.T: k=4! l=3
torch.einsum('...ij,...jk', torch.ones(2, 3, 4), torch.ones(3, 4, 5))
    product [A i j k] The letter A must have one size: torch.ones(2, 3, 4) has 2, torch.ones(3,
        4, 5) has 3.
    torch.ones(2, 3, 4): A=2! i=3 j=4
    torch.ones(3, 4, 5): A=3! j=4 k=5
net(x)
    product [rows inner out] The inner dimension must have one size: input has 4, Linear.weight
        has 3.
    input: rows=3 inner=4!
    Linear.weight: out=2 inner=3!
net(torch.ones(2, 5, 3, 4))
    product [batch batch rows inner out] The inner dimension must have one size: input has 4,
        Linear.weight has 3.
    input: batch=2 batch=5 rows=3 inner=4!
    Linear.weight: out=2 inner=3!
F.linear(torch.ones(4), torch.ones(2, 3))
    product [inner out] The inner dimension must have one size: torch.ones(4) has 4,
        torch.ones(2, 3) has 3.
    torch.ones(4): inner=4!
    torch.ones(2, 3): out=2 inner=3!
F.conv2d(images, torch.ones(6, 1, 5, 5))
    product [batch/out channels height width] images has 3 channels, but the weight is for 1.
    images: batch/out=2 channels=3! height=28 width=28
    torch.ones(6, 1, 5, 5): batch/out=6 channels=1! height=5 width=5
F.conv2d(images[0], torch.ones(6, 1, 5, 5))
    product [batch/out channels height width] images[0] has 3 channels, but the weight is for 1.
    images[0]: channels=3! height=28 width=28
    torch.ones(6, 1, 5, 5): batch/out=6 channels=1! height=5 width=5
F.conv2d(images[0, 0], torch.ones(6, 1, 5, 5))
    product [0 1 2 3] images[0, 0] has 2 dimensions, but (batch, channels, height, width) are
        needed.
    images[0, 0]: 0=28! 1=28!
    torch.ones(6, 1, 5, 5): 0=6 1=1 2=5 3=5
F.conv2d(torch.ones(1, 4, 8, 8), torch.ones(6, 3, 5, 5), groups=2)
    product [batch/out channels height width] torch.ones(1, 4, 8, 8) has 4 channels, but the
        weight is for 6.
    torch.ones(1, 4, 8, 8): batch/out=1 channels=4! height=8 width=8
    torch.ones(6, 3, 5, 5): batch/out=6 channels=3! height=5 width=5 (2 groups: 6 channels)
F.conv_transpose2d(images, torch.ones(6, 1, 5, 5))
    product [batch/out channels height width] images has 3 channels, but the weight is for 6.
    images: batch/out=2 channels=3! height=28 width=28
    torch.ones(6, 1, 5, 5): channels=6! batch/out=1 height=5 width=5
F.conv_transpose1d(torch.ones(2, 4, 8), torch.ones(6, 2, 3), groups=2)
    product [batch/out channels width] torch.ones(2, 4, 8) has 4 channels, but the weight is for 6.
    torch.ones(2, 4, 8): batch/out=2 channels=4! width=8
    torch.ones(6, 2, 3): channels=6! batch/out=2 width=3
F.conv1d(torch.ones(2, 3, 4, 5), torch.ones(2, 2, 1))
    product [0 1 2 3] torch.ones(2, 3, 4, 5) has 4 dimensions, but (batch, channels, width) are
        needed.
    torch.ones(2, 3, 4, 5): 0=2! 1=3! 2=4! 3=5!
    torch.ones(2, 2, 1): 0=2 1=2 2=1
F.conv3d(torch.ones(2, 3, 4, 4, 4), torch.ones(1, 2, 1, 1, 1))
    product [batch/out channels depth height width] torch.ones(2, 3, 4, 4, 4) has 3 channels,
        but the weight is for 2.
    torch.ones(2, 3, 4, 4, 4): batch/out=2 channels=3! depth=4 height=4 width=4
    torch.ones(1, 2, 1, 1, 1): batch/out=1 channels=2! depth=1 height=1 width=1
F.cross_entropy(x, torch.zeros(2).long())
    join [0 1] x holds 3 samples, but torch.zeros(2).long() 2.
    x: 0=3! 1=4
    torch.zeros(2).long(): 0=2!
x + torch.ones(4, device='meta')
    device [0 1] They are on different devices: cpu and meta.
    x: 0=3 1=4 wrong device
    torch.ones(4, device='meta'): 0=4 wrong device
x @ x.T.double()
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    x.T.double(): 0=4 1=3 wrong dtype
x[torch.tensor([1.5])]
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([1.5]): 0=1 wrong dtype
x[torch.tensor([0]), torch.tensor([1.5])]
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0]): 0=1
    torch.tensor([1.5]): 0=1 wrong dtype
x.gather(0, torch.zeros(1, 1))
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.zeros(1, 1): 0=1 1=1 wrong dtype
x.backward()
    other [0 1]
    x: 0=3 1=4
torch.vdot(torch.ones(2), torch.ones(3))
    product [inner] The inner dimension must have one size: torch.ones(2) has 2, torch.ones(3)
        has 3.
    torch.ones(2): inner=2!
    torch.ones(3): inner=3!
torch.ones(3, dtype=torch.long).mean()
    other [0]
    torch.ones(3, dtype=torch.long): 0=3
torch.cat(tensors=[x, x.T], dim=1)
    join [0 joined] All sizes except those of dim 1 must be equal, but they differ in dim 0.
    x: 0=3! joined=4
    x.T: 0=4! joined=3
torch.cat((*parts, x))
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    x: joined=3 1=4!
    a tensor: joined=4 1=3!
    x: joined=3 1=4!
torch.ones(3) - x
    broadcast [-2 -1] At dim -1, counted from the right, torch.ones(3) has 3, x has 4: neither is 1.
    torch.ones(3): -1=3!
    x: -2=3 -1=4!
product_of(m)
    product [rows inner columns] The inner dimension must have one size: a has 4, a has 3.
    a: rows=3 inner=4!
    a: inner=3! columns=4
torch.einsum('ij,jk', x, x)
    product [i j k] The letter j must have one size: x has 4, x has 3.
    x: i=3 j=4!
    x: j=3! k=4
torch.cat(parts)
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    parts[0]: joined=3 1=4!
    parts[1]: joined=4 1=3!
images[0, torch.ones(5, 28).bool()]
    index [0 1 2 3] A mask has a truth value for each element that it covers: (5, 28) does not fit.
    images: 0=2 1=3! 2=28 3=28
    torch.ones(5, 28).bool(): 1=5! 2=28
x[0, torch.ones(4, 2).bool()]
    index [0 1 2] A mask has a truth value for each element that it covers: (4, 2) does not fit.
    x: 0=3 1=4
    torch.ones(4, 2).bool(): 1=4 2=2!
F.conv_transpose2d(images, torch.ones(6, 1, 5, 5), None, 1, 0, 0, 1, (1, 1))
    product [batch/out channels height width] images has 3 channels, but the weight is for 6.
    images: batch/out=2 channels=3! height=28 width=28
    torch.ones(6, 1, 5, 5): channels=6! batch/out=1 height=5 width=5
F.conv2d(torch.ones(1, 4, 8, 8), torch.ones(6, 3, 5, 5), None, 1, 0, 1, 2)
    product [batch/out channels height width] torch.ones(1, 4, 8, 8) has 4 channels, but the
        weight is for 6.
    torch.ones(1, 4, 8, 8): batch/out=1 channels=4! height=8 width=8
    torch.ones(6, 3, 5, 5): batch/out=6 channels=3! height=5 width=5 (2 groups: 6 channels)
m.bool() @ m.T.bool()
    other [0 1]
    m.bool(): 0=3 1=4
    m.T.bool(): 0=4 1=3
torch.einsum('bi,bi,bi->b', torch.ones(1, 4), torch.ones(2, 4), torch.ones(3, 4))
    product [b i] The letter b must have one size: torch.ones(1, 4) has 1, torch.ones(2, 4) has
        2, torch.ones(3, 4) has 3.
    torch.ones(1, 4): b=1 i=4
    torch.ones(2, 4): b=2! i=4
    torch.ones(3, 4): b=3! i=4
x[:, :1] @ x
    product [rows inner columns] The inner dimension must have one size: x[:, :1] has 1, x has 3.
    x[:, :1]: rows=3 inner=1!
    x: inner=3! columns=4
x.split_with_sizes([1, 1])
    elements [0 1] The pieces add up to 2, but dim 0 has 3.
    x: 0=3! 1=4
    pieces: 0=1! 1=1! (sum 2) wrong note
x.split_with_sizes([3, 2], 1)
    elements [0 1 2] The pieces add up to 5, but dim 1 has 4.
    x: 0=3 1=4!
    pieces: 1=3! 2=2! (sum 5) wrong note
torch.where(torch.ones(3).bool(), x, m)
    broadcast [-2 -1] At dim -1, counted from the right, torch.ones(3).bool() has 3, x has 4, m
        has 4: none is 1.
    torch.ones(3).bool(): -1=3!
    x: -2=3 -1=4!
    m: -2=3 -1=4!
x.masked_fill(torch.ones(3).bool(), 0)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3).bool() has 3:
        neither is 1.
    x: -2=3 -1=4!
    torch.ones(3).bool(): -1=3!
F.mse_loss(x, x.T)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, x.T has 3: neither is 1.
    x: -2=3! -1=4!
    x.T: -2=4! -1=3!
torch.bmm(torch.ones(2, 3, 4), x)
    other [0 1 2]
    torch.ones(2, 3, 4): 0=2 1=3 2=4
    x: 0=3 1=4
x > torch.ones(3)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3): -1=3!
x += torch.ones(3)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3): -1=3!
torch.ones(3).mT
    other [0]
    torch.ones(3): 0=3
~x
    other [0 1]
    x: 0=3 1=4
torch.add(*[x, torch.ones(3)])
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, a tensor has 3: neither is 1.
    x: -2=3 -1=4!
    a tensor: -1=3!
torch.add(x, other=torch.ones(3))
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3): -1=3!
torch.add(input=x, other=torch.ones(3))
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3): -1=3!
nn.Linear(3, 2)(torch.ones(4))
    product [inner out] The inner dimension must have one size: input has 4, Linear.weight has 3.
    input: inner=4!
    Linear.weight: out=2 inner=3!
x[torch.tensor([0, 5])] = 1
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=0…5!
torch.stack([torch.ones(n) for n in range(1, 12)])
    join [0] All shapes must be equal, but they differ in dim 0.
    a tensor: 0=1!
    a tensor: 0=2!
    a tensor: 0=3!
    a tensor: 0=4!
    a tensor: 0=5!
    a tensor: 0=6!
    a tensor: 0=7!
    a tensor: 0=8!
x[torch.zeros(0, dtype=torch.long), 9]
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 9 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=torch.zeros(0, dtype=torch.long) 1=9!
x[torch.tensor([[0, 5]]), :, None]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=0…5! 1=:
images[..., [30]]
    index [0 1 2 3] Dim 3 of images has 28 elements, numbered 0 to 27: 30 is not one of them.
    images: 0=2 1=3 2=28 3=28
    numbered: 0=0…1 1=0…2 2=0…27 3=0…27
    index: 3=30!
images[:, 3:, [1], 40]
    index [0 1 2 3] Dim 3 of images has 28 elements, numbered 0 to 27: 40 is not one of them.
    images: 0=2 1=3 2=28 3=28
    numbered: 0=0…1 1=0…2 2=0…27 3=0…27
    index: 0=: 1=3: 2=1 3=40!
x + torch.ones(1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 - 10)
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(1 + 1 + 1 + 1 + 1 +
        1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 - 10) has 3: neither is 1.
    x: -2=3 -1=4!
    torch.ones(1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + …: -1=3!
torch.ones(2, 3).addmm_(x, x)
    product [rows inner columns] The inner dimension must have one size: x has 4, x has 3.
    x: rows=3 inner=4!
    x: inner=3! columns=4
images.sum(-7)
    dimension [-7 -6 -5 -4 -3 -2 -1] images has no dim -7: it has 4 dimensions.
    images: -4=2 -3=3 -2=28 -1=28
    dim: -7=-7!
images.sum((0, 4))
    dimension [0 1 2 3 4] images has no dim 4: it has 4 dimensions.
    images: 0=2 1=3 2=28 3=28
    dim: 4=4!
x.T.expand(4, 4)
    broadcast [-2 -1] At dim -1, counted from the right, x.T has 3: only a 1 can be stretched.
    x.T: -2=4 -1=3!
    asked for: -2=4 -1=4!
torch.tensor(1.0).expand(2).view(3)
    elements [0] torch.tensor(1.0).expand(2) has 2 elements, but 3 were asked for.
    torch.tensor(1.0).expand(2): 0=2 (2 elements) wrong note
    asked for: 0=3! (3 elements) wrong note
x.to('meta') @ x
    product [rows inner columns] The inner dimension must have one size: x.to('meta') has 4, x
        has 3.
    x.to('meta'): rows=3 inner=4!
    x: inner=3! columns=4
F.conv2d(images, torch.ones(6, 1, 5, 5), torch.ones(6))
    product [batch/out channels height width] images has 3 channels, but the weight is for 1.
    images: batch/out=2 channels=3! height=28 width=28
    torch.ones(6, 1, 5, 5): batch/out=6 channels=1! height=5 width=5
nn.Conv2d(1, 6, 5)(images)
    product [batch/out channels height width] input has 3 channels, but the weight is for 1.
    input: batch/out=2 channels=3! height=28 width=28
    weight: batch/out=6 channels=1! height=5 width=5
nn.Linear(3, 2)(x)
    product [rows inner out] The inner dimension must have one size: input has 4, Linear.weight
        has 3.
    input: rows=3 inner=4!
    Linear.weight: out=2 inner=3!
x.sum(-100)
    dimension [-3 -2 -1] x has no dim -100: it has 2 dimensions.
    x: -2=3 -1=4
    dim: -3=-100!
torch.cat([torch.tensor(1.0), x])
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    torch.tensor(1.0):
    x: joined=3 1=4!
F.embedding(torch.tensor([0]), torch.tensor(1.0))
    other [0]
    torch.tensor([0]): 0=1
    torch.tensor(1.0):
F.conv2d(images, torch.ones(6, 1, 5))
    other [0 1 2 3]
    images: 0=2 1=3 2=28 3=28
    torch.ones(6, 1, 5): 0=6 1=1 2=5
torch.cat([x, x.T], dim=np.int64(1))
    join [0 joined] All sizes except those of dim 1 must be equal, but they differ in dim 0.
    x: 0=3! joined=4
    x.T: 0=4! joined=3
x.gather(np.int64(0), torch.zeros(1, 9).long())
    index [dim 1] Except along dim 0, the index must not be larger than x.
    x: dim=3 1=4!
    torch.zeros(1, 9).long(): dim=1 1=9!
torch.tensor(1.0).gather(0, torch.zeros(2, 2).long())
    other [0 1]
    torch.tensor(1.0):
    torch.zeros(2, 2).long(): 0=2 1=2
x[5, None, None, None, None, None, None, None, None, None, None, None, None, :]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=5! 1=:
torch.zeros([1] * 14)[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    index [0 1 2 3 4 5 6 7 8 9 10 11 12 13] Dim 0 of torch.zeros([1] * 14) has 1 element,
        numbered 0 to 0: 4 is not one of them.
    torch.zeros([1] * 14): 0=1 1=1 2=1 3=1 4=1 5=1 6=1 7=1 8=1 9=1 10=1 11=1 12=1 13=1
    numbered: 0=0…0 1=0…0 2=0…0 3=0…0 4=0…0 5=0…0 6=0…0 7=0…0 8=0…0 9=0…0 10=0…0 11=0…0 12=0…0
        13=0…0
    index: 0=4! 1=0 2=0 3=0 4=0 5=0 6=0 7=0 8=0 9=0 10=0 11=0
x.view((5, -1))
    elements [0 1] x has 12 elements, not a multiple of 5.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=5! 1=-1 (12 is not a multiple of 5) wrong note
x.reshape([5, 2])
    elements [0 1] x has 12 elements, but 10 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=5! 1=2! (5 · 2 = 10 elements) wrong note
x.view(-1, 0)
    elements [0 1] x has 12 elements, not a multiple of 0.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=-1 1=0! (12 is not a multiple of 0) wrong note
x.permute((0, 0))
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0 1=0!
x.permute(np.int64(0), np.int64(0))
    other [0 1]
    x: 0=3 1=4
x[:, :1] = torch.ones(3, 4)
    broadcast [-2 -1] At dim -1, counted from the right, picked has 1: a tensor written in place
        is not stretched.
    picked: -2=3 -1=1!
    torch.ones(3, 4): -2=3 -1=4
torch.einsum('az,abcz', torch.ones(3, 4), torch.ones(3, 2, 5, 6))
    product [a b c z] The letter z must have one size: torch.ones(3, 4) has 4, torch.ones(3, 2,
        5, 6) has 6.
    torch.ones(3, 4): a=3 z=4!
    torch.ones(3, 2, 5, 6): a=3 b=2 c=5 z=6!
torch.einsum('ab,bca', torch.ones(3, 4), torch.ones(4, 5, 6))
    product [a b c] The letter a must have one size: torch.ones(3, 4) has 3, torch.ones(4, 5, 6)
        has 6.
    torch.ones(3, 4): a=3! b=4
    torch.ones(4, 5, 6): b=4 c=5 a=6!
x.expand(size=(3, 8))
    broadcast [-2 -1] At dim -1, counted from the right, x has 4: only a 1 can be stretched.
    x: -2=3 -1=4!
    asked for: -2=3 -1=8!
x.expand((2, 3, 5))
    broadcast [-3 -2 -1] At dim -1, counted from the right, x has 4: only a 1 can be stretched.
    x: -2=3 -1=4!
    asked for: -3=2 -2=3 -1=5!
x.gather(-1, torch.tensor([[-5]]))
    index [0 dim] Dim 1 of x has 4 elements: the index holds -5. In gather a negative index does
        not count from the end.
    x: 0=3 dim=4! (numbered 0…3)
    torch.tensor([[-5]]): 0=1 dim=1 (holds -5) wrong note
x.select(1, -5)
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: -5 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=: 1=-5!
x.select(-1, 4)
    index [0 1] Dim 1 of x has 4 elements, numbered 0 to 3: 4 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=: 1=4!
x.T[-5]
    index [0 1] Dim 0 of x.T has 4 elements, numbered 0 to 3: -5 is not one of them.
    x.T: 0=4 1=3
    numbered: 0=0…3 1=0…2
    index: 0=-5!
x[torch.ones(3, 4, 1).bool()]
    index [0 1 2] A mask has a truth value for each element that it covers: (3, 4, 1) does not fit.
    x: 0=3 1=4
    torch.ones(3, 4, 1).bool(): 0=3 1=4 2=1!
images[:, torch.ones(4).bool()]
    index [0 1 2 3] A mask has a truth value for each element that it covers: (4,) does not fit.
    images: 0=2 1=3! 2=28 3=28
    torch.ones(4).bool(): 1=4!
m.matmul(torch.ones(2, 3, 3))
    product [batch rows inner columns] The inner dimension must have one size: m has 4,
        torch.ones(2, 3, 3) has 3.
    m: rows=3 inner=4!
    torch.ones(2, 3, 3): batch=2 inner=3! columns=3
x.split([3, 2], -1)
    elements [0 1 2] The pieces add up to 5, but dim 1 has 4.
    x: 0=3 1=4!
    pieces: 1=3! 2=2! (sum 5) wrong note
(x + 1).split([3, 2], -1)
    elements [0 1 2] The pieces add up to 5, but dim 1 has 4.
    x + 1: 0=3 1=4!
    pieces: 1=3! 2=2! (sum 5) wrong note
torch.split(x, [3, 2], dim=1)
    elements [0 1 2] The pieces add up to 5, but dim 1 has 4.
    x: 0=3 1=4!
    pieces: 1=3! 2=2! (sum 5) wrong note
x[0] = torch.ones(2, 5)
    broadcast [-2 -1] At dim -1, counted from the right, picked has 4, torch.ones(2, 5)
        has 5: neither is 1.
    picked: -1=4!
    torch.ones(2, 5): -2=2 -1=5!
x.sum(np.int64(5))
    dimension [0 1 2 3 4 5] x has no dim 5: it has 2 dimensions.
    x: 0=3 1=4
    dim: 5=5!
x.view(np.int64(7))
    elements [0 1] x has 12 elements, but 7 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=7! (7 elements) wrong note
x.permute(np.int64(0), np.int64(0))
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0 1=0!
x[np.int64(7)]
    index [0 1] Dim 0 of x has 3 elements, numbered 0 to 2: 7 is not one of them.
    x: 0=3 1=4
    numbered: 0=0…2 1=0…3
    index: 0=7!
torch.cat(parts, dim=np.int64(0))
    join [joined 1] All sizes except those of dim 0 must be equal, but they differ in dim 1.
    parts[0]: joined=3 1=4!
    parts[1]: joined=4 1=3!
F.cross_entropy(x, torch.tensor([0, 3, 4]))
    index [0 1] x has scores of 4 classes, numbered 0 to 3, and torch.tensor([0, 3, 4]) holds the
        label 4.
    x: 0=3 1=4! (4 classes, 0…3)
    torch.tensor([0, 3, 4]): 0=3 (holds 0…4) wrong note
F.cross_entropy(x, torch.tensor([0, 3, 5]), weight=torch.ones(4))
    index [0 1] x has scores of 4 classes, numbered 0 to 3, and torch.tensor([0, 3, 5]) holds the
        label 5.
    x: 0=3 1=4! (4 classes, 0…3)
    torch.tensor([0, 3, 5]): 0=3 (holds 0…5) wrong note
F.embedding(torch.tensor([1, -1]), x)
    index [0 1] The rows of x are numbered from 0, and the index holds -1. In embedding a
        negative index does not count from the end.
    x: 0=3! 1=4 (numbered 0…2)
    torch.tensor([1, -1]): 0=2 (holds -1…1) wrong note
F.embedding(torch.tensor(-1), x)
    index [0 1] The rows of x are numbered from 0, and the index holds -1. In embedding a
        negative index does not count from the end.
    x: 0=3! 1=4 (numbered 0…2)
    torch.tensor(-1): (holds -1) wrong note
F.embedding(torch.tensor([0.5]), x)
    dtype [0 1] An index tensor is int64 or bool: float32.
    torch.tensor([0.5]): 0=1 wrong dtype
    x: 0=3 1=4
x.scatter(0, torch.tensor([[0.5]]), x)
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([[0.5]]): 0=1 1=1 wrong dtype
    x: 0=3 1=4
x.scatter_add(0, torch.tensor([[0]]), x.double())
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    torch.tensor([[0]]): 0=1 1=1
    x.double(): 0=3 1=4 wrong dtype
x[torch.tensor([0])] = torch.ones(4).double()
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    torch.tensor([0]): 0=1
    torch.ones(4).double(): 0=4 wrong dtype
x.index_add(0, torch.tensor([0]), x[:1].double())
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    torch.tensor([0]): 0=1
    x[:1].double(): 0=1 1=4 wrong dtype
x.index_copy(0, torch.tensor([0]), x[:1].double())
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    torch.tensor([0]): 0=1
    x[:1].double(): 0=1 1=4 wrong dtype
x.take_along_dim(torch.tensor([[0.5]]), 0)
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([[0.5]]): 0=1 1=1 wrong dtype
x.scatter(0, torch.tensor([[0]]), x.double())
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    torch.tensor([[0]]): 0=1 1=1
    x.double(): 0=3 1=4 wrong dtype
x[torch.tensor([0.5])] = torch.ones(4)
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
    torch.ones(4): 0=4
x[torch.tensor([0.5])] = torch.ones(4).double()
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
    torch.ones(4).double(): 0=4
x.index_put((torch.tensor([0.5]),), torch.ones(4))
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
    torch.ones(4): 0=4
x.masked_fill(torch.ones(3, 4), 0)
    other [0 1]
    x: 0=3 1=4
    torch.ones(3, 4): 0=3 1=4
x.take(torch.tensor([0.5]))
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
x.permute(())
    other [0 1]
    x: 0=3 1=4
x.reshape(())
    other [0 1]
    x: 0=3 1=4
x.view(2, 2)
    elements [0 1] x has 12 elements, but 4 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=2! 1=2! (2 · 2 = 4 elements) wrong note
x.view(3, 4, 2)
    elements [0 1 2] x has 12 elements, but 24 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=3! 1=4! 2=2! (3 · 4 · 2 = 24 elements) wrong note
x.T.view(2, 6)
    elements [0 1] view() cannot copy, and no strides describe this shape in the order of x.T.
    x.T: 0=4 1=3 (12 elements)
    strides: 0=1! 1=4! (not C order)
    asked for: 0=2 1=6
x.T.reshape(5)
    elements [0 1] x.T has 12 elements, but 5 were asked for.
    x.T: 0=4 1=3 (12 elements) wrong note
    asked for: 0=5! (5 elements) wrong note
x.view(0)
    elements [0 1] x has 12 elements, but 0 were asked for.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=0! (0 elements) wrong note
torch.ones(1).view(2)
    elements [0] torch.ones(1) has 1 element, but 2 were asked for.
    torch.ones(1): 0=1 (1 element) wrong note
    asked for: 0=2! (2 elements) wrong note
x.view(-1, 5, -1)
    elements [0 1 2] torch infers one size only: more than one is -1.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=-1! 1=5 2=-1! (only one -1) wrong note
x.reshape(-1, 7)
    elements [0 1] x has 12 elements, not a multiple of 7.
    x: 0=3 1=4 (12 elements) wrong note
    asked for: 0=-1 1=7! (12 is not a multiple of 7) wrong note
x[:, 1:].view(9)
    elements [0 1] view() cannot copy, and no strides describe this shape in the order of x[:, 1:].
    x[:, 1:]: 0=3 1=3 (9 elements)
    strides: 0=4! 1=1 (not C order)
    asked for: 0=9
x.split([5], 1)
    elements [0 1] The pieces add up to 5, but dim 1 has 4.
    x: 0=3 1=4!
    pieces: 1=5! (sum 5) wrong note
x.split([1, 1, 2])
    elements [0 1 2] The pieces add up to 4, but dim 0 has 3.
    x: 0=3! 1=4
    pieces: 0=1! 1=1! 2=2! (sum 4) wrong note
x.split((1, 1), 0)
    elements [0 1] The pieces add up to 2, but dim 0 has 3.
    x: 0=3! 1=4
    pieces: 0=1! 1=1! (sum 2) wrong note
x.permute(1, 1)
    dimension [0 1] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=1 1=1!
x.permute(0, 1, 1)
    dimension [0 1 2] Each of the 2 dimensions of x must be named once.
    x: 0=3 1=4
    dims: 0=0 1=1 2=1!
images.permute(0, 1, 1, 3)
    dimension [0 1 2 3] Each of the 4 dimensions of images must be named once.
    images: 0=2 1=3 2=28 3=28
    dims: 0=0 1=1 2=1! 3=3
x.sum(3)
    dimension [0 1 2 3] x has no dim 3: it has 2 dimensions.
    x: 0=3 1=4
    dim: 3=3!
x.sum(-4)
    dimension [-4 -3 -2 -1] x has no dim -4: it has 2 dimensions.
    x: -2=3 -1=4
    dim: -4=-4!
x.softmax(2)
    dimension [0 1 2] x has no dim 2: it has 2 dimensions.
    x: 0=3 1=4
    dim: 2=2!
images.transpose(0, 4)
    dimension [0 1 2 3 4] images has no dim 4: it has 4 dimensions.
    images: 0=2 1=3 2=28 3=28
    dim: 4=4!
torch.tensor(1.0).sum(2)
    dimension [0 1 2] torch.tensor(1.0) has no dim 2: it has 0 dimensions.
    torch.tensor(1.0):
    dim: 2=2!
F.cross_entropy(x, torch.zeros(4).long())
    join [0 1] x holds 3 samples, but torch.zeros(4).long() 4.
    x: 0=3! 1=4
    torch.zeros(4).long(): 0=4!
F.cross_entropy(torch.ones(2, 3, 4), torch.full((2, 4), 3))
    index [0 1 2] torch.ones(2, 3, 4) has scores of 3 classes, numbered 0 to 2, and
        torch.full((2, 4), 3) holds the label 3.
    torch.ones(2, 3, 4): 0=2 1=3! 2=4 (3 classes, 0…2)
    torch.full((2, 4), 3): 0=2 1=4 (holds 3…3) wrong note
F.cross_entropy(x, torch.tensor([0, -7, 1]))
    index [0 1] x has scores of 4 classes, numbered 0 to 3, and torch.tensor([0, -7, 1]) holds
        the label -7.
    x: 0=3 1=4! (4 classes, 0…3)
    torch.tensor([0, -7, 1]): 0=3 (holds -7…1) wrong note
F.nll_loss(x, torch.tensor([0, 4, 1]))
    index [0 1] x has scores of 4 classes, numbered 0 to 3, and torch.tensor([0, 4, 1]) holds
        the label 4.
    x: 0=3 1=4! (4 classes, 0…3)
    torch.tensor([0, 4, 1]): 0=3 (holds 0…4) wrong note
x + torch.ones(3, 4, device='meta')[:, :2]
    broadcast [-2 -1] At dim -1, counted from the right, x has 4, torch.ones(3, 4,
        device='meta')[:, :2] has 2: neither is 1.
    x: -2=3 -1=4!
    torch.ones(3, 4, device='meta')[:, :2]: -2=3 -1=2!
torch.cat([x, torch.ones(3, 4, device='meta')])
    device [0 1] They are on different devices: cpu and meta.
    x: 0=3 1=4 wrong device
    torch.ones(3, 4, device='meta'): 0=3 1=4 wrong device
x.addmm(x, x.T.double())
    dtype [0 1] The dtypes do not match: float32 and float64.
    x: 0=3 1=4 wrong dtype
    x: 0=3 1=4 wrong dtype
    x.T.double(): 0=4 1=3 wrong dtype
x.gather(0, torch.tensor([[0.5]]))
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([[0.5]]): 0=1 1=1 wrong dtype
x.index_select(0, torch.tensor([0.5]))
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
x[torch.tensor([0.5]), torch.tensor([0.5])]
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([0.5]): 0=1 wrong dtype
    torch.tensor([0.5]): 0=1 wrong dtype
x.scatter(0, torch.tensor([[0.0]]), 1.0)
    dtype [0 1] An index tensor is int64 or bool: float32.
    x: 0=3 1=4
    torch.tensor([[0.0]]): 0=1 1=1 wrong dtype
x.dot(torch.ones(3))
    other [0 1]
    x: 0=3 1=4
    torch.ones(3): 0=3
torch.ones(3).dot(torch.ones(3).double())
    dtype [0] The dtypes do not match: float32 and float64.
    torch.ones(3): 0=3 wrong dtype
    torch.ones(3).double(): 0=3 wrong dtype
"""
"""A call, then indented the kind, the headings and the sentence, and a line for each row of the
picture: its cells with their headings, ! where they do not fit, its note and what is wrong."""


def lines_of(failed: FailedOperands) -> list[str]:
    lines = [f"{failed.kind} [{' '.join(failed.headings)}] {failed.text}".rstrip()]
    for row in failed.operands:
        told = [f"{row.text}:"]
        for place, (cell, column) in enumerate(zip(row.cells, row.columns, strict=True)):
            mark = "!" if place in row.failing else ""
            told.append(f"{failed.headings[column]}={cell}{mark}")
        told += [f"({row.note})"] if row.note else []
        told += [f"wrong {' '.join(row.wrong)}"] if row.wrong else []
        lines.append(" ".join(told))
    return lines


@pytest.mark.parametrize(("source", "told"), paragraphs(REFUSED).items(), ids=paragraphs(REFUSED))
def test_a_refused_call_is_drawn(bench, source: str, told: list[str]) -> None:
    failed = bench.failed(source)
    assert failed is not None and lines_of(failed) == told
