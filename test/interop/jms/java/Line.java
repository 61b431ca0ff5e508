import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** One line of the driver's protocol: a sequence number, a word, and key=value pairs. */
final class Line {
    private static final PrintStream OUT = new PrintStream(
            new java.io.FileOutputStream(java.io.FileDescriptor.out), false);

    final long seq;
    final String word;
    private final Map<String, String> pairs = new LinkedHashMap<>();

    Line(long seq, String word) {
        this.seq = seq;
        this.word = word;
    }

    static Line parse(String text) {
        String[] parts = text.split(" ");
        Line line = new Line(Long.parseLong(parts[0]), parts[1]);
        for (int i = 2; i < parts.length; i++) {
            int eq = parts[i].indexOf('=');
            line.pairs.put(decode(parts[i].substring(0, eq)), decode(parts[i].substring(eq + 1)));
        }
        return line;
    }

    Line put(String key, Object value) {
        pairs.put(key, String.valueOf(value));
        return this;
    }

    boolean has(String key) {
        return pairs.containsKey(key);
    }

    String get(String key) {
        return pairs.getOrDefault(key, "");
    }

    long number(String key, long otherwise) {
        return has(key) ? Long.parseLong(get(key)) : otherwise;
    }

    boolean yes(String key) {
        return get(key).equals("true");
    }

    /** The pairs whose key begins with a prefix, without it. */
    Map<String, String> below(String prefix) {
        Map<String, String> found = new LinkedHashMap<>();
        pairs.forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                found.put(key.substring(prefix.length()), value);
            }
        });
        return found;
    }

    /** Writes the line and flushes: the other side waits for it. */
    void send() {
        StringBuilder text = new StringBuilder().append(seq).append(' ').append(word);
        pairs.forEach((key, value) ->
                text.append(' ').append(encode(key)).append('=').append(encode(value)));
        byte[] bytes = text.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        synchronized (OUT) {
            OUT.write(bytes, 0, bytes.length);
            OUT.flush();
        }
    }

    private static String encode(String s) {
        return URLEncoder.encode(s, StandardCharsets.UTF_8);
    }

    private static String decode(String s) {
        return URLDecoder.decode(s, StandardCharsets.UTF_8);
    }
}
