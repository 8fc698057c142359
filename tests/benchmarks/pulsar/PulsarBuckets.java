import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.pulsar.broker.qos.AsyncTokenBucket;
import org.apache.pulsar.broker.qos.MonotonicClock;

/**
 * Replays events on Pulsar's own token buckets, one thread, event times given.
 *
 * Arguments: folder with times, costs and index (64-bit little-endian integers), number of buckets, rate, initial tokens,
 * passes. Each line "run" on standard input is answered with the nanoseconds of all passes and the number of true results
 * of one; every pass has fresh buckets, whose making is not timed. "decide" writes one byte an event to the folder.
 */
public final class PulsarBuckets {
    private static final class EventTime implements MonotonicClock {
        long nowNanos;

        @Override
        public long getTickNanos() {
            return nowNanos;
        }
    }

    private final long[] times;
    private final long[] costs;
    private final int[] index;
    private final EventTime clock = new EventTime();

    private PulsarBuckets(Path folder) throws IOException {
        times = read(folder.resolve("times"));
        costs = read(folder.resolve("costs"));
        long[] wide = read(folder.resolve("index"));
        index = new int[wide.length];
        for (int e = 0; e < wide.length; e++) {
            index[e] = (int) wide[e];
        }
    }

    private static long[] read(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        long[] values = new long[bytes.remaining() / Long.BYTES];
        bytes.asLongBuffer().get(values);
        return values;
    }

    private AsyncTokenBucket[] fresh(int count, long rate, long initial) {
        clock.nowNanos = times[0];
        AsyncTokenBucket[] buckets = new AsyncTokenBucket[count];
        for (int i = 0; i < count; i++) {
            buckets[i] = AsyncTokenBucket.builder().rate(rate).initialTokens(initial).clock(clock).build();
        }
        return buckets;
    }

    private int one(AsyncTokenBucket bucket) {
        int trues = 0;
        for (int e = 0; e < times.length; e++) {
            clock.nowNanos = times[e];
            if (bucket.consumeTokensAndCheckIfContainsTokens(costs[e])) {
                trues++;
            }
        }
        return trues;
    }

    private int many(AsyncTokenBucket[] buckets) {
        int trues = 0;
        for (int e = 0; e < times.length; e++) {
            clock.nowNanos = times[e];
            if (buckets[index[e]].consumeTokensAndCheckIfContainsTokens(costs[e])) {
                trues++;
            }
        }
        return trues;
    }

    private byte[] decide(AsyncTokenBucket[] buckets) {
        byte[] decisions = new byte[times.length];
        for (int e = 0; e < times.length; e++) {
            clock.nowNanos = times[e];
            decisions[e] = (byte) (buckets[index[e]].consumeTokensAndCheckIfContainsTokens(costs[e]) ? 1 : 0);
        }
        return decisions;
    }

    public static void main(String[] args) throws IOException {
        Path folder = Path.of(args[0]);
        int count = Integer.parseInt(args[1]);
        long rate = Long.parseLong(args[2]);
        long initial = Long.parseLong(args[3]);
        int passes = Integer.parseInt(args[4]);
        PulsarBuckets replay = new PulsarBuckets(folder);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            if (command.equals("decide")) {
                Files.write(folder.resolve("decisions"), replay.decide(replay.fresh(count, rate, initial)));
                System.out.println("decided");
                continue;
            }
            long nanos = 0;
            int trues = 0;
            for (int pass = 0; pass < passes; pass++) {
                AsyncTokenBucket[] buckets = replay.fresh(count, rate, initial);
                if (pass == 0) {
                    System.gc();
                }
                long start = System.nanoTime();
                trues = count == 1 ? replay.one(buckets[0]) : replay.many(buckets);
                nanos += System.nanoTime() - start;
            }
            System.out.println(nanos + " " + trues);
        }
    }
}
