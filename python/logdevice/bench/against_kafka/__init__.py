"""`make bench`: measures the same work on LogDevice and on Kafka, in one run."""
