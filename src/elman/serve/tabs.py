"""The tabs of a server: what it keeps for each between two requests, with a bound and an age."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from elman.serve.limits import Limits, busy

KeptT = TypeVar("KeptT")

ACTIVE = 5.0  # seconds after a request within which a tab is not forgotten for another one


class Tab:
    """What is kept for one tab, by the name of the run and what it is; `holding` counts a kind in all tabs."""

    def __init__(self, now: float, holding: Callable[[type], int]) -> None:
        self.used, self.holding = now, holding
        self.kept: dict[tuple[str, type], object] = {}

    def keep(self, run: str, kind: type[KeptT], make: Callable[[], KeptT]) -> KeptT:
        """What is kept of a kind for a run, made where there is none yet."""
        found = self.kept.get((run, kind))
        if found is None:
            found = self.kept[run, kind] = make()
        assert isinstance(found, kind)
        return found

    def find(self, run: str, kind: type[KeptT]) -> KeptT | None:
        found = self.kept.get((run, kind))
        assert found is None or isinstance(found, kind)
        return found

    def drop(self, run: str, kind: type) -> None:
        self.kept.pop((run, kind), None)


class Tabs:
    """The tabs by their names, the one used longest ago first; `clock` gives seconds."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._tabs: OrderedDict[str, Tab] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tabs)

    def use(self, name: str | None) -> Tab:
        """The tab of a name, made where there is none; None is a tab that nothing is kept for.

        Raises `Refused` where there are as many as may be, all in use.
        """
        now = self._clock()
        self.forget(now)
        if name is None:
            return Tab(now, self.holding)
        if name not in self._tabs and len(self._tabs) >= self._limits.tabs:
            oldest = next(iter(self._tabs.values()))
            if now - oldest.used < ACTIVE:
                raise busy(f"{len(self._tabs)} tabs are in use", int(ACTIVE))
            self._tabs.popitem(last=False)
        tab = self._tabs.setdefault(name, Tab(now, self.holding))
        tab.used = now
        self._tabs.move_to_end(name)
        return tab

    def close(self, name: str) -> None:
        self._tabs.pop(name, None)

    def forget(self, now: float) -> None:
        """Forget the tabs that were left long ago."""
        while self._tabs:
            name, oldest = next(iter(self._tabs.items()))
            if now - oldest.used < 60 * self._limits.tab_minutes:
                return
            del self._tabs[name]

    def holding(self, kind: type) -> int:
        return sum(one is kind for tab in list(self._tabs.values()) for _, one in list(tab.kept))
