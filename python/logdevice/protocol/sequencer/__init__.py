"""The sequencer of a log: takes an epoch, numbers records, stores and releases them."""
