"""What is known of one question, from a cycle that was worked out in full: which rows fit, and their scores.

Another pod that asks the same gets these answers once the rows that changed since were asked about again.
Whatever cannot be brought up to date raises, and the cycle is worked out from nothing.

    Kept (one cycle's answers) --> Remembered --refresh_fits, refresh_scores--> the next equal pod's answers
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from berth.evaluation.filtering import codes_on
from berth.evaluation.kept import Kept
from berth.evaluation.line_up import LineUp, Positions, Unsettled
from berth.evaluation.scoring import final_scores, scores_on
from berth.framework.attempt import Attempt
from berth.framework.cycle_state import CycleState
from berth.framework.interface import Depends, FilterPlugin, NormalizeScorePlugin, Plugin, ScorePlugin, Scores
from berth.framework.node_scores import NodeScores
from berth.snapshot.columns import Ints, Mask, Rows, every_row, rows_where
from berth.snapshot.row_view import RowView
from berth.snapshot.snapshot import Snapshot

FEW_ROWS = 64
"""So many changed rows are worth asking about apart in any cluster; in a large one, an eighth of all rows."""

LEFT_OUT = np.iinfo(np.int64).min


class OutdatedError(Exception):
    """What is remembered cannot be brought up to date; the text says why, in a word."""


@dataclass(slots=True)
class Normalised:
    """One plugin's raw scores, whose final ones hang on all of them. Shapes: raw int64 (n,)."""

    plugin: ScorePlugin
    weight: int
    raw: Scores


class Remembered:
    """The answers of all plugins but those that have to be asked about all nodes for every pod.

    Shapes: fits bool (n,), where none of these plugins turns the pod down; scores int64 (n,), without meaning
        where the pod does not fit.
    """

    def __init__(
        self,
        line_up: LineUp,
        attempt: Attempt,
        kept: Kept,
        bases: Mapping[str, Hashable | None],
        positions: Positions,
    ) -> None:
        nodes, state, n = attempt.nodes, attempt.state, len(attempt.nodes)
        self._line_up = line_up
        away = line_up.without_basis(bases)
        self.unsettled = Unsettled(line_up.plugins, away)
        settled = [p for p in line_up.members if p.name not in away]
        self._bases = [(p, bases[p.name]) for p in settled if p.name in bases]
        self._resuming = [(p, b) for p, b in self._bases if type(p).resume is not Plugin.resume]
        self._static_generation = nodes.static_generation
        self._position = nodes.changed_footprints.end
        self._positions = [(journal, end) for name, journal, end in positions if name not in away]
        self._values = {
            k: v for name, ours in kept.values.items() if name not in away for k, v in ours.items()
        }
        self.skip_filter, self.skip_score = state.skip_filter - away, state.skip_score - away
        self._to_score: set[int] = set()
        self._view: RowView | None = None
        self._keep_fits(kept, away, n)
        self._keep_scores(kept, away, state, n)

    def _keep_fits(self, kept: Kept, away: frozenset[str], n: int) -> None:
        given = [p for p in self._line_up.plugins.filter if p.name in kept.codes and p.name not in away]
        asked = (p for p in given if p.depends is not Depends.OBJECT)
        # In-process plugins first: about rows that they turn down nobody else need be asked.
        self._filters: list[FilterPlugin] = sorted(asked, key=lambda plugin: not plugin.in_process)
        self.fits: Mask = np.ones(n, dtype=bool)
        for plugin in given:
            if plugin.depends is Depends.OBJECT:
                self.fits &= kept.codes[plugin.name] == 0
        # In most clusters, for most pods, this is no reason against any node.
        self._objects_fit = None if self.fits.all() else self.fits.copy()
        for plugin in self._filters:
            self.fits &= kept.codes[plugin.name] == 0

    def _keep_scores(self, kept: Kept, away: frozenset[str], state: CycleState, n: int) -> None:
        self.scored = kept.scored
        self._plain: list[tuple[ScorePlugin, int]] = []
        self._normalised: list[Normalised] = []
        self._of_objects: list[tuple[int, Scores]] = []
        self._scores: Ints = np.zeros(n, dtype=np.int64)
        self._ranks: Ints | None = None
        for plugin, weight in self._line_up.plugins.score:
            raw = kept.raw.get(plugin.name)
            if raw is None or plugin.name in away:
                continue
            of_objects = plugin.depends is Depends.OBJECT
            if isinstance(plugin, NormalizeScorePlugin) and not plugin.leaves_scores(state):
                self._normalised.append(Normalised(plugin, weight, raw if of_objects else raw.copy()))
                continue
            self._scores += weight * raw
            if of_objects:
                self._of_objects.append((weight, raw))
            else:
                self._plain.append((plugin, weight))

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        own = sum(part.plugin.depends is not Depends.OBJECT for part in self._normalised)
        return self.fits.size * (2 + 8 * (2 + own))

    def hand_over(self, attempt: Attempt) -> None:
        """Leave in the state of a cycle what these plugins left in the first one's.

        Raises: OutdatedError where some plugin's answers have another basis now.
        """
        attempt.state.take_over(self._values)
        for plugin, basis in self._resuming:
            plugin.resume(attempt.state, basis)
        self._check(self._bases, attempt)

    def check_resumed(self, attempt: Attempt) -> None:
        """Make sure that what plugins answered in this cycle goes with what they answered before.

        Raises: OutdatedError.
        """
        self._check(self._resuming, attempt)

    def _check(self, bases: Iterable[tuple[Plugin, Hashable]], attempt: Attempt) -> None:
        for plugin, known in bases:
            if plugin.basis(attempt.state, attempt.pod, attempt.nodes) != known:
                raise OutdatedError(plugin.name)

    async def refresh_fits(self, attempt: Attempt, point: int) -> None:
        """Ask about the rows that changed, whether they fit.

        Raises: OutdatedError; PluginError where a plugin fails.
        """
        rows, self._view = self._changed(attempt.nodes), None
        if not rows.size:
            return
        left = rows if self._objects_fit is None else rows[self._objects_fit[rows]]
        view = RowView(attempt.nodes, left)
        for plugin in self._filters:
            if not left.size:
                break
            mark = attempt.record.begin(plugin.name, point)
            codes = await codes_on(plugin, attempt.on(view, attempt.state))
            rejected = np.count_nonzero(codes)
            if rejected:
                left = left[codes == 0]
                view = RowView(attempt.nodes, left)
            attempt.record.end(mark, rejected=rejected)
        self._note_fits(rows, left)
        self._view = None if self._to_score else view
        self._to_score.update(rows.tolist())

    def _note_fits(self, rows: Rows, fitting: Rows) -> None:
        """Of those rows, which were asked about, these fit now."""
        before = np.count_nonzero(self.fits[rows])
        still = np.count_nonzero(self.fits[fitting])
        if not before == still == fitting.size:
            self.fits[rows] = False
            self.fits[fitting] = True
            self._ranks = None

    def _changed(self, nodes: Snapshot) -> Rows:
        """The rows to ask about, in ascending order."""
        if nodes.static_generation != self._static_generation:
            raise OutdatedError("nodes")
        changed = nodes.changed_footprints.since(self._position)
        if changed is None:
            raise OutdatedError("age")
        rows = set(changed)
        for journal, position in self._positions:
            names = journal.since(position)
            if names is None:
                raise OutdatedError("age")
            rows.update(row for row in map(nodes.row_of.get, set(names)) if row is not None)
        if len(rows) > max(FEW_ROWS, len(nodes) // 8):
            raise OutdatedError("age")
        self._position = nodes.changed_footprints.end
        self._positions = [(journal, journal.end) for journal, _ in self._positions]
        return np.array(sorted(rows), dtype=np.intp)

    async def refresh_scores(self, attempt: Attempt, point: int) -> None:
        """Score the rows that changed and fit.

        Raises: PluginError where a plugin fails.
        """
        view = self._view_to_score(attempt.nodes)
        if not len(view):
            return
        rows, part = view.picked, attempt.on(view, attempt.state)
        scores: Ints = np.zeros(rows.size, dtype=np.int64)
        for weight, raw in self._of_objects:
            scores += weight * raw[rows]
        for plugin, weight in self._plain:
            raw = await self._asked(plugin, part, point)
            scores += weight * (raw if plugin.in_process else final_scores(plugin, part.state, part.pod, raw))
        if self._ranks is not None:
            self._ranks[rows] += scores - self._scores[rows]
        self._scores[rows] = scores
        for normalised in self._normalised:
            if normalised.plugin.depends is not Depends.OBJECT:
                raw = await self._asked(normalised.plugin, part, point)
                if (raw != normalised.raw[rows]).any():
                    normalised.raw[rows] = raw
                    self._ranks = None

    def _view_to_score(self, nodes: Snapshot) -> RowView:
        """The rows that have been asked about and fit; usually those of this very cycle."""
        view, self._view = self._view, None
        if view is None:
            rows = np.array(sorted(row for row in self._to_score if self.fits[row]), dtype=np.intp)
            view = RowView(nodes, rows)
        self._to_score.clear()
        return view

    async def _asked(self, plugin: ScorePlugin, part: Attempt, point: int) -> Scores:
        mark = part.record.begin(plugin.name, point)
        raw = await scores_on(plugin, part)
        part.record.end(mark)
        return raw

    def scores(self, attempt: Attempt, feasible: Mask) -> NodeScores:
        """The sums of these plugins' final scores on the feasible rows.

        Raises: PluginError where a plugin fails.
        """
        rows = rows_where(feasible)
        if rows.size == np.count_nonzero(self.fits):
            return NodeScores(rows, self.ranks(attempt).totals[rows])
        return NodeScores(rows, self._scores[rows] + self._final_on(rows, attempt))

    def ranks(self, attempt: Attempt) -> NodeScores:
        """The same where all rows that fit are feasible; rows that do not fit come below any that does.

        It is not to be written to. Raises: PluginError where a plugin fails.
        """
        if self._ranks is None:
            rows = rows_where(self.fits)
            self._ranks = np.full(self.fits.size, LEFT_OUT, dtype=np.int64)
            self._ranks[rows] = self._scores[rows] + self._final_on(rows, attempt)
        return NodeScores(every_row(self.fits.size), self._ranks)

    def _final_on(self, rows: Rows, attempt: Attempt) -> Ints:
        total: Ints = np.zeros(rows.size, dtype=np.int64)
        for part in self._normalised:
            final = final_scores(part.plugin, attempt.state, attempt.pod, part.raw[rows])
            total += part.weight * final
        return total
