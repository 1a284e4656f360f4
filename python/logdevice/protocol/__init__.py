"""What nodes and clients decide, as synchronous state machines without IO.

Four contracts make the machines compose:

1. One door. `start(now_ms) -> list[Effect]` and `handle(event, now_ms) -> list[Effect]`. State
   changes nowhere else. A machine that is asked about itself (`health()`) only answers.
2. Events are facts in the past tense (`ConnectionLost`), effects are orders (`Deliver`). Both are
   frozen and complete at birth, so tests compare lists and traces can be replayed. What is only a
   message on its way is one of the six kinds of `io.py`; parts of a machine share one `effects.Effects`.
3. Time, chance and disk are correspondents. The time of an event is handed in with it; a machine
   that wants to be woken says `WakeAt` and gets `Woken` (a late, early or doubled wake-up is
   harmless: the machine looks at its own deadlines). Chance is a `random.Random` or a seed handed
   to the constructor. Reading a disk is an effect out and an event back.
4. Every effect ends in an event or in silence that a deadline of the machine covers; performing it
   never raises. Failure is an event (`ConnectionLost`, `ReadFailed`).

Late and duplicate events are normal and answered with `[]`; impossible ones assert. What a remote
peer does wrong is counted and dropped, never asserted. Nothing here may import more than
`logdevice.types`, `logdevice.settings` and pure parts of the standard library;
`python/test_architecture.py` keeps it so.
"""
