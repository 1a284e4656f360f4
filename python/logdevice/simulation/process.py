"""A process of the simulation: it has its own clock, may crash and start again, and may stand still.

Each start begins a new life; what an earlier life had planned is dropped. A hung process (SIGSTOP) still
receives messages, but does nothing until it wakes up. Then it does everything at once, after its deadlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logdevice.simulation.world import Action

if TYPE_CHECKING:
    from logdevice.simulation.network import Network


class SimProcess:
    def __init__(self, name: str, network: Network, *, clock_skew_ms: int = 0) -> None:
        self.name = name
        self.network = network
        self.world = network.world
        self.is_up = True
        self.is_hung = False
        self.life = 1
        self.crash: Action | None = None  # crashes it between two effects; None: it never crashes there
        self._clock_skew_ms = clock_skew_ms
        self._backlog: list[Action] = []

    @property
    def now_ms(self) -> int:
        """The time by this process's own clock."""
        return self.world.now_ms + self._clock_skew_ms

    @property
    def is_fine(self) -> bool:
        return self.is_up and not self.is_hung

    def say(self, what: str) -> None:
        self.world.say(self.name, what)

    def begin_life(self) -> None:
        if not self.is_up:
            self.say("boots")
            self.is_up = True

    def end_life(self, how: str = "crashes") -> None:
        self.say(how)
        self.is_up = self.is_hung = False
        self.life += 1
        self._backlog.clear()
        self.network.died(self)

    def hang(self) -> None:
        self.say("hangs")
        self.is_hung = True

    def wake(self) -> None:
        if self.is_hung:
            self.say("goes on")
            self.is_hung = False
            backlog, self._backlog = self._backlog, []
            for action in backlog:
                self.do(self.life, action)

    def do(self, life: int, action: Action) -> None:
        """Performs the action now, or when the process wakes up; not at all if this life has ended."""
        if self.life != life:
            return
        if self.is_hung:
            self._backlog.append(action)
        else:
            action()

    def now(self, action: Action) -> None:
        """Like `do`, for the current life."""
        if self.is_up:
            self.do(self.life, action)

    def later(self, delay_ms: int, action: Action) -> None:
        life = self.life
        self.world.after(delay_ms, lambda: self.do(life, action))

    def wake_at(self, time_ms: int, action: Action) -> None:
        """Wakes by the process's own clock; perhaps late or twice, as the contract of timers allows."""
        delay_ms = max(0, time_ms - self.now_ms)
        if self.world.chance(self.world.faults.wake_twice):
            self.later(self.world.between(0, delay_ms), action)
        late_ms = self.world.between(1, 200) if self.world.chance(self.world.faults.wake_late) else 0
        self.later(delay_ms + late_ms, action)
