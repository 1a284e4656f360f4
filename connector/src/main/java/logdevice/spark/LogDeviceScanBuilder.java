package logdevice.spark;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Collects which columns and which rows a query wants, for Python to make the best of.
 *
 * <p>Spark goes on to apply every filter itself: what Python makes of one may be wider than the filter, and a
 * filter it does not understand costs nothing.
 */
final class LogDeviceScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownFilters {
    private static final Filter[] NO_FILTERS = {};

    private final CreatedSource created;
    private final CaseInsensitiveStringMap options;
    private StructType columns;
    private Filter[] filters = NO_FILTERS;

    LogDeviceScanBuilder(CreatedSource created, StructType schema, CaseInsensitiveStringMap options) {
        this.created = created;
        this.columns = schema;
        this.options = options;
    }

    @Override
    public Filter[] pushFilters(Filter[] wanted) {
        filters = wanted;
        return wanted;
    }

    @Override
    public Filter[] pushedFilters() {
        return NO_FILTERS;
    }

    @Override
    public void pruneColumns(StructType required) {
        columns = required;
    }

    @Override
    public Scan build() {
        return new LogDeviceScan(created, columns, options, filters);
    }
}
