"""A process of the simulation: it has lives, a clock of its own, and moments in which it stands still.

What an earlier life had planned is void. A hung process (SIGSTOP) still gets its mail, but does nothing
until it wakes up; then it does everything at once, its deadlines long past.
"""

from __future__ import annotations

from logdevice.simulation.whole.faults import ClusterFaults
from logdevice.simulation.world import Action, World


class Process:
    def __init__(self, name: str, world: World, faults: ClusterFaults, *, clock_skew_ms: int = 0) -> None:
        self.name = name
        self.world = world
        self.faults = faults
        self.is_up = True
        self.is_hung = False
        self.life = 1
        self._clock_skew_ms = clock_skew_ms
        self._backlog: list[Action] = []

    @property
    def now_ms(self) -> int:
        """What this process takes for the time."""
        return self.world.now_ms + self._clock_skew_ms

    def end_life(self) -> None:
        self.is_up = self.is_hung = False
        self.life += 1
        self._backlog.clear()

    def hang(self) -> None:
        self.world.say(self.name, "hangs")
        self.is_hung = True

    def wake(self) -> None:
        if self.is_hung:
            self.world.say(self.name, "goes on")
            self.is_hung = False
            backlog, self._backlog = self._backlog, []
            for action in backlog:
                self.do(self.life, action)

    def do(self, life: int, action: Action) -> None:
        """Now, or when it wakes up, or never if it has died meanwhile."""
        if self.life != life:
            return
        if self.is_hung:
            self._backlog.append(action)
        else:
            action()

    def later(self, delay_ms: int, action: Action) -> None:
        life = self.life
        self.world.after(delay_ms, lambda: self.do(life, action))

    def wake_at(self, time_ms: int, action: Action) -> None:
        """A wake-up call by the process's own clock, as careless as the contract of timers allows."""
        delay_ms = max(0, time_ms - self.now_ms)
        if self.world.chance(self.faults.wake_twice):
            self.later(self.world.between(0, delay_ms), action)
        late_ms = self.world.between(1, 200) if self.world.chance(self.faults.wake_late) else 0
        self.later(delay_ms + late_ms, action)
