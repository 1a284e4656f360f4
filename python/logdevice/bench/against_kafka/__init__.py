"""`make bench`: the same work for Kafka and for us, in one run."""
