package logdevice.spark.catalog;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.util.List;
import java.util.Map;

import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.Test;

public class LsnFunctionsTest {
    private static final long E5N3 = (5L << 32) | 3;

    @Test
    public void anLsnIsTakenApart() {
        assertEquals(5, LsnFunctions.EpochOf.invoke(E5N3));
        assertEquals(3, LsnFunctions.OffsetOf.invoke(E5N3));
        assertEquals(UTF8String.fromString("e5n3"), LsnFunctions.TextOf.invoke(E5N3));
        assertEquals(UTF8String.fromString("max"), LsnFunctions.TextOf.invoke(Long.MAX_VALUE));
        assertEquals(UTF8String.fromString("e0n4294967295"), LsnFunctions.TextOf.invoke(0xFFFFFFFFL));
    }

    @Test
    public void whatPeopleWriteIsRead() {
        Map<String, Long> texts = Map.of(
                "e5n3", E5N3,
                " E5N3 ", E5N3,
                "e0005n0003", E5N3,
                "42", 42L,
                "9223372036854775807", Long.MAX_VALUE,
                "oldest", 1L,
                "MAX", Long.MAX_VALUE,
                "e2147483646n4294967295", (2147483646L << 32) | 0xFFFFFFFFL);
        texts.forEach((text, lsn) -> assertEquals(text, lsn, LsnFunctions.Parse.invoke(UTF8String.fromString(text))));
        assertNull(LsnFunctions.Parse.invoke(null));
    }

    @Test
    public void anythingElseIsRefused() {
        for (String text : List.of(
                "", "e5", "n3", "e5n", "-1", "5.0", "e2147483647n0", "e1n4294967296", "9223372036854775808", "tail")) {
            IllegalArgumentException error = assertThrows(
                    text, IllegalArgumentException.class, () -> LsnFunctions.parse(text));
            assertEquals(
                    text + " is not an LSN; write it as e5n3, as an integer from 0 to 9223372036854775807, "
                            + "or as oldest or max",
                    error.getMessage());
        }
    }

    @Test
    public void eachTakesOneArgument() {
        LsnFunctions.BY_NAME.values().forEach(function -> assertThrows(
                UnsupportedOperationException.class, () -> function.bind(new StructType())));
    }
}
