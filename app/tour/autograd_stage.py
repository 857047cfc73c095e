"""Tour, Autograd workspace: step one batch forward, then its gradients backward."""

from __future__ import annotations

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
)

PICTURED_AFTER = 2
"""The step of each pass after which a picture is taken."""


class AutogradStage(Stage):
    def run(self) -> None:
        self.application.window.show_workspace("autograd")
        self._view = self.application.workspaces.autograd.page.steps
        self._forward()
        self._backward()
        self._compare()

    def _forward(self) -> None:
        self.press(self._view, "pass_start")
        shown = self.wait_for(
            ForwardSnapshot, lambda s: s.position == 0, "the forward pass to start"
        )
        for position in range(1, len(shown.order) + 1):
            self.press(self._view, "pass_step")
            self.wait_for(ForwardSnapshot, lambda s, p=position: s.position == p, "a forward step")
            self.count("forward_steps")
            if position == PICTURED_AFTER:
                self.picture("forward")
        end = self.store.newest(ForwardSnapshot)
        if end is None or end.loss is None:
            raise TourFailure("the forward pass ended without a loss")

    def _backward(self) -> None:
        self.press(self._view, "pass_step")  # after the loss: read the graph
        self.wait_for(BackwardSnapshot, lambda s: s.position == 0, "the backward pass to start")
        graph = self.wait_for(GraphSnapshot, lambda s: s.plan, "the autograd graph")
        presenter = self.application.workspaces.autograd
        self.hand.until(lambda: presenter.drawn is graph, "the graph to be drawn")
        for position in range(1, len(graph.plan) + 1):
            self.press(self._view, "pass_step")
            self.wait_for(
                BackwardSnapshot, lambda s, p=position: s.position == p, "a backward step"
            )
            self.count("backward_steps")
            if position == PICTURED_AFTER:
                self.picture("backward")

    def _compare(self) -> None:
        self.press(self._view, "pass_compare")
        comparison = self.wait_for(ComparisonSnapshot, lambda s: True, "the comparison")
        self.report["max_gradient_difference"] = comparison.max_difference
        self.picture("gradients-compared")
        if comparison.max_difference != 0:
            raise TourFailure(
                f"stepped gradients differ from backward() by {comparison.max_difference:g}"
            )
