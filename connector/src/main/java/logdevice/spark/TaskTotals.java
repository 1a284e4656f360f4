package logdevice.spark;

import java.util.Map;
import java.util.TreeMap;

import org.apache.spark.util.AccumulatorV2;

/** What all tasks of a stream have counted so far, brought to the driver by Spark. */
final class TaskTotals extends AccumulatorV2<Map<String, Long>, Map<String, Long>> {
    private static final long serialVersionUID = 1;

    private final TreeMap<String, Long> totals = new TreeMap<>();

    @Override
    public synchronized boolean isZero() {
        return totals.isEmpty();
    }

    @Override
    public synchronized TaskTotals copy() {
        TaskTotals copy = new TaskTotals();
        copy.totals.putAll(totals);
        return copy;
    }

    @Override
    public synchronized void reset() {
        totals.clear();
    }

    @Override
    public synchronized void add(Map<String, Long> counted) {
        counted.forEach((name, value) -> totals.merge(name, value, Long::sum));
    }

    @Override
    public void merge(AccumulatorV2<Map<String, Long>, Map<String, Long>> other) {
        add(other.value());
    }

    @Override
    public synchronized Map<String, Long> value() {
        return new TreeMap<>(totals);
    }
}
