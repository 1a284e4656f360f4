package logdevice.spark;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * The socket to a Python worker. Whoever waits on it looks every half a second whether it still should, so a task notices
 * that it was cancelled also when Spark does not interrupt threads. Closing it does nothing: the worker may serve again.
 */
final class WorkerChannel implements ReadableByteChannel {
    private static final int LOOK_UP_MS = 500;

    private final SocketChannel socket;
    private final Selector selector;
    private final SelectionKey key;
    private final Runnable stillWanted; // throws if not
    private final ByteBuffer number = ByteBuffer.allocateDirect(Long.BYTES);

    WorkerChannel(SocketChannel socket, Selector selector, SelectionKey key, Runnable stillWanted) {
        this.socket = socket;
        this.selector = selector;
        this.key = key;
        this.stillWanted = stillWanted;
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
        while (true) {
            int count = socket.read(target);
            if (count != 0 || !target.hasRemaining()) {
                return count;
            }
            waitFor(SelectionKey.OP_READ);
        }
    }

    void write(ByteBuffer source) throws IOException {
        while (source.hasRemaining()) {
            if (socket.write(source) == 0) {
                waitFor(SelectionKey.OP_WRITE);
            }
        }
    }

    int readInt() throws IOException {
        return fill(Integer.BYTES).getInt();
    }

    long readLong() throws IOException {
        return fill(Long.BYTES).getLong();
    }

    byte[] readBytes(int count) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(count);
        readFully(bytes);
        return bytes.array();
    }

    private ByteBuffer fill(int count) throws IOException {
        number.clear().limit(count);
        readFully(number);
        return number.flip();
    }

    private void readFully(ByteBuffer target) throws IOException {
        while (target.hasRemaining()) {
            if (read(target) < 0) {
                throw new EOFException();
            }
        }
    }

    private void waitFor(int operation) throws IOException {
        key.interestOps(operation);
        selector.select(LOOK_UP_MS);
        selector.selectedKeys().clear();
        stillWanted.run();
    }

    @Override
    public boolean isOpen() {
        return socket.isOpen();
    }

    @Override
    public void close() {
        // See the top: the lease decides what becomes of the worker.
    }
}
