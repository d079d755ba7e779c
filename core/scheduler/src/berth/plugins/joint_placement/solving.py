"""Solving a program with HiGHS, bounded by counts so that the same program has the same answer."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from berth.plugins.joint_placement.program import Program

MISSING = (
    "JointPlacement needs the solver HiGHS, which is not installed: "
    "pip install berth-scheduler[joint], or take JointPlacement out of the profile"
)
SEED = 1
NO_GAP = 1e-9
LESS_THAN_ONE = 0.9
"""Worths are whole numbers but for penalties' halves: a plan this close to the best is the best."""


class SearchBounds(msgspec.Struct, frozen=True):
    """When a search ends without a proof that its plan is the best.

    `branches` ends it after the same work always; `seconds` is the guard behind it.
    """

    branches: int
    seconds: float


class Solver:
    """HiGHS, from its wheel `highspy`."""

    def __init__(self) -> None:
        """Raises: ValueError where HiGHS is not installed."""
        try:
            import highspy  # noqa: PLC0415 - an optional dependency, of profiles that name the plugin
        except ModuleNotFoundError as error:
            raise ValueError(MISSING) from error
        self._highspy: Any = highspy

    def solve(self, program: Program, start: Mapping[int, float], bounds: SearchBounds) -> list[float] | None:
        """The values of the columns, of the best solution that was found; None where none was.

        `start` gives some columns of a solution to begin with.
        """
        highs = self._highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", SEED),
            ("mip_rel_gap", NO_GAP),
            ("mip_abs_gap", LESS_THAN_ONE),
            ("mip_max_nodes", bounds.branches),
            ("time_limit", bounds.seconds),
        ):
            highs.setOptionValue(option, value)
        highs.passModel(self._model(program))
        if start:
            columns = np.array(list(start), dtype=np.int32)
            highs.setSolution(len(start), columns, np.array(list(start.values()), dtype=np.float64))
        highs.run()
        found = highs.getInfo().primal_solution_status == self._highspy.SolutionStatus.kSolutionStatusFeasible
        return list(highs.getSolution().col_value) if found else None

    def _model(self, program: Program) -> Any:
        highspy, lp = self._highspy, self._highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.worth), len(program.row_lower)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.array(program.worth)
        lp.col_lower_, lp.col_upper_ = np.array(program.lower), np.array(program.upper)
        lp.row_lower_, lp.row_upper_ = np.array(program.row_lower), np.array(program.row_upper)
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in program.whole]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array([*program.starts, len(program.columns)], dtype=np.int32)
        lp.a_matrix_.index_ = np.array(program.columns, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(program.coefficients)
        return lp
