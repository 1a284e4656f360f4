package logdevice.spark;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

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
    private final DataInputStream data = new DataInputStream(Channels.newInputStream(this));

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

    /** Numbers and bytes as Python's {@code write_int} and its like send them; nothing is read ahead. */
    DataInputStream data() {
        return data;
    }

    /** With their length in front. */
    byte[] readBytes() throws IOException {
        byte[] bytes = new byte[data.readInt()];
        data.readFully(bytes);
        return bytes;
    }

    String readText() throws IOException {
        return new String(readBytes(), StandardCharsets.UTF_8);
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
