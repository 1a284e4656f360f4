package logdevice.spark.catalog;

import java.math.BigInteger;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Functions for LSNs: their parts, their text form, and LSNs from text. Python's {@code functions} module has the same.
 *
 * <p>Spark calls the static methods {@code invoke} from the code it generates.
 */
public final class LsnFunctions {
    private static final long MAX = Long.MAX_VALUE;
    private static final long OLDEST = 1;
    private static final int ESN_BITS = 32;
    private static final long ESN_MAX = 0xFFFFFFFFL;
    private static final long EPOCH_MAX = (1L << 31) - 2;
    private static final Pattern TEXT = Pattern.compile("[eE]([0-9]{1,10})[nN]([0-9]{1,10})");
    private static final Pattern NUMBER = Pattern.compile("[0-9]{1,19}");

    static final Map<String, UnboundFunction> BY_NAME = new LinkedHashMap<>();

    static {
        for (Lsn function : new Lsn[] {new EpochOf(), new OffsetOf(), new TextOf(), new Parse()}) {
            BY_NAME.put(function.name(), function);
        }
    }

    private LsnFunctions() {}

    /** A function of one argument. It takes only one type, so the same object is the unbound and the bound function. */
    private abstract static class Lsn implements UnboundFunction {
        private static final long serialVersionUID = 1;

        private final String name;
        private final DataType argument;
        private final DataType result;
        private final String description;

        Lsn(String name, DataType argument, DataType result, String description) {
            this.name = name;
            this.argument = argument;
            this.result = result;
            this.description = description;
        }

        @Override
        public BoundFunction bind(StructType given) {
            if (given.length() != 1) {
                throw new UnsupportedOperationException(name + " takes one argument, not " + given.length());
            }
            return (BoundFunction) this;
        }

        @Override
        public String description() {
            return description;
        }

        @Override
        public String name() {
            return name;
        }

        public DataType[] inputTypes() {
            return new DataType[] {argument};
        }

        public DataType resultType() {
            return result;
        }

        public String canonicalName() {
            return "logdevice." + name;
        }
    }

    public static final class EpochOf extends Lsn implements ScalarFunction<Long> {
        private static final long serialVersionUID = 1;

        EpochOf() {
            super("lsn_epoch", DataTypes.LongType, DataTypes.LongType, "lsn_epoch(lsn): the epoch, 5 of e5n3");
        }

        public static long invoke(long lsn) {
            return lsn >>> ESN_BITS;
        }
    }

    public static final class OffsetOf extends Lsn implements ScalarFunction<Long> {
        private static final long serialVersionUID = 1;

        OffsetOf() {
            super("lsn_offset", DataTypes.LongType, DataTypes.LongType, "lsn_offset(lsn): the ESN, 3 of e5n3");
        }

        public static long invoke(long lsn) {
            return lsn & ESN_MAX;
        }
    }

    public static final class TextOf extends Lsn implements ScalarFunction<UTF8String> {
        private static final long serialVersionUID = 1;

        TextOf() {
            super("lsn_text", DataTypes.LongType, DataTypes.StringType, "lsn_text(lsn): the LSN as text, e5n3");
        }

        public static UTF8String invoke(long lsn) {
            return UTF8String.fromString(lsn == MAX ? "max" : "e" + (lsn >>> ESN_BITS) + "n" + (lsn & ESN_MAX));
        }
    }

    public static final class Parse extends Lsn implements ScalarFunction<Long> {
        private static final long serialVersionUID = 1;

        Parse() {
            super("lsn_parse", DataTypes.StringType, DataTypes.LongType, "lsn_parse(text): the LSN for e5n3");
        }

        public static Long invoke(UTF8String text) {
            return text == null ? null : parse(text.toString());
        }
    }

    static long parse(String given) {
        String text = given.strip();
        Matcher match = TEXT.matcher(text);
        if (match.matches()) {
            long epoch = Long.parseLong(match.group(1));
            long offset = Long.parseLong(match.group(2));
            if (epoch <= EPOCH_MAX && offset <= ESN_MAX) {
                return (epoch << ESN_BITS) | offset;
            }
        } else if (NUMBER.matcher(text).matches() && new BigInteger(text).bitLength() < Long.SIZE) {
            return Long.parseLong(text);
        } else if (text.toLowerCase(Locale.ROOT).equals("oldest")) {
            return OLDEST;
        } else if (text.toLowerCase(Locale.ROOT).equals("max")) {
            return MAX;
        }
        throw new IllegalArgumentException(given + " is not an LSN; write it as e5n3, as an integer from 0 to " + MAX
                + ", or as oldest or max");
    }
}
