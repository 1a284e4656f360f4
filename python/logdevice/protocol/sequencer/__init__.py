"""The sequencer of a log: takes an epoch, numbers records, stores them on copysets, releases them."""
