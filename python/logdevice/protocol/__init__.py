"""What nodes and clients decide, as synchronous state machines without IO.

Every machine follows four rules, so that machines can be combined:

1. State changes only in `start(now_ms) -> list[Effect]` and `handle(event, now_ms) -> list[Effect]`.
   A query such as `health()` changes nothing.
2. Events are facts in the past tense (`ConnectionLost`), effects are orders (`Deliver`). Both are
   immutable, so tests compare lists and traces can be replayed. Messages between processes travel in
   the six kinds of `io.py`; the parts of a machine share one `effects.Effects`.
3. Time, chance and disk come from outside. Every event comes with the current time. A machine that
   must be called later emits `WakeAt` and gets `Woken` (a late, early or doubled wake-up is harmless:
   the machine checks its own deadlines). Chance is a `random.Random` or a seed passed to the
   constructor. Reading a disk is an effect, and the result is an event.
4. Every effect ends in an event, or in silence that a deadline of the machine covers. Performing an
   effect never raises: a failure is an event (`ConnectionLost`, `ReadFailed`).

Late and duplicate events are normal and answered with `[]`; impossible ones fail an assertion. What a
remote peer does wrong is counted and dropped, never asserted. What may be imported here (the nouns, the
settings, pure parts of the standard library) is in `python/architecture.py`; `python/test_architecture.py`
checks it.
"""
