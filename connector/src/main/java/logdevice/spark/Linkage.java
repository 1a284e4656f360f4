package logdevice.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;

import org.apache.xbean.asm9.ClassReader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks that this Spark has every method that the classes of this jar call.
 *
 * <p>Most of the methods for Python workers are internal to Spark and may change. The JVM would notice a missing method
 * only when it is called, in a task. The constant pools of the jar's classes name all methods that they call.
 */
final class Linkage {
    private static final Logger LOG = LoggerFactory.getLogger(Linkage.class);
    private static final String OURS = "logdevice/spark/";
    // Tags of constants, see chapter 4.4 of the JVM specification.
    private static final int CLASS = 7;
    private static final int METHOD = 10;
    private static final int INTERFACE_METHOD = 11;

    private static Boolean complete; // null until the first call of isComplete

    /** A method of another class, as it is called. */
    record Call(String owner, String name, String descriptor) implements Comparable<Call> {
        @Override
        public String toString() {
            return owner.replace('/', '.') + "." + name + descriptor;
        }

        @Override
        public int compareTo(Call other) {
            return toString().compareTo(other.toString());
        }
    }

    private Linkage() {}

    /** Whether all methods are there; checked once. If not, Spark reads logs as from any Python source. */
    static synchronized boolean isComplete() {
        if (complete == null) {
            complete = hasAll(callsOf(OURS + "LogDeviceTable"));
        }
        return complete;
    }

    /** Whether all these methods are there. If not, logs a warning that names the first missing one. */
    static boolean hasAll(Set<Call> calls) {
        try {
            calls.forEach(Linkage::require);
            return true;
        } catch (LinkageError error) {
            LOG.warn(
                    "This Spark differs from the one that the logdevice jar was built for ({}): logs are read without "
                            + "the jar, which is slower. Use the jar for this version of Spark.",
                    error.toString());
            return false;
        }
    }

    static void require(Call call) {
        ClassLoader loader = Linkage.class.getClassLoader();
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        try {
            Class<?> owner = Class.forName(call.owner().replace('/', '.'), false, loader);
            MethodType type = MethodType.fromMethodDescriptorString(call.descriptor(), loader);
            if (call.name().equals("<init>")) {
                lookup.findConstructor(owner, type);
                return;
            }
            try {
                lookup.findVirtual(owner, call.name(), type);
            } catch (NoSuchMethodException | IllegalAccessException isStatic) {
                lookup.findStatic(owner, call.name(), type);
            }
        } catch (IllegalAccessException notPublic) {
            // The method exists but is protected: a subclass in this jar calls it.
        } catch (ReflectiveOperationException | TypeNotPresentException missing) {
            throw new NoSuchMethodError(call.toString());
        }
    }

    /** All methods of Spark and Arrow that a class of this jar calls, or another class of the jar that it refers to. */
    static Set<Call> callsOf(String first) {
        Set<Call> calls = new TreeSet<>();
        Set<String> seen = new HashSet<>(Set.of(first));
        Deque<String> left = new ArrayDeque<>(seen);
        while (!left.isEmpty()) {
            ClassReader pool = constantsOf(left.pop());
            char[] buffer = new char[pool.getMaxStringLength()];
            for (int index = 1; index < pool.getItemCount(); index++) {
                int item = pool.getItem(index); // 0 after a constant that takes two places
                int tag = item == 0 ? 0 : pool.readByte(item - 1);
                if (tag == CLASS) {
                    String name = pool.readUTF8(item, buffer);
                    if (name.startsWith(OURS) && seen.add(name)) {
                        left.push(name);
                    }
                } else if (tag == METHOD || tag == INTERFACE_METHOD) {
                    int nameAndType = pool.getItem(pool.readUnsignedShort(item + 2));
                    Call call = new Call(
                            pool.readClass(item, buffer),
                            pool.readUTF8(nameAndType, buffer),
                            pool.readUTF8(nameAndType + 2, buffer));
                    if (call.owner().startsWith("org/apache/")) {
                        calls.add(call);
                    }
                }
            }
        }
        return calls;
    }

    private static ClassReader constantsOf(String name) {
        try (InputStream file = Linkage.class.getClassLoader().getResourceAsStream(name + ".class")) {
            return new ClassReader(file);
        } catch (IOException error) {
            throw new UncheckedIOException("the jar cannot be read", error);
        }
    }
}
