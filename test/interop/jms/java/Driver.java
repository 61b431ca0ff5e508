import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.XAConnection;
import javax.transaction.xa.XAException;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQTempDestination;
import org.apache.activemq.transport.DefaultTransportListener;

/**
 * An unmodified JMS client that is told what to do by lines on standard input and tells what it
 * sees by lines on standard output; it ends when its input ends. A request is
 *
 *     SEQ VERB key=value ...
 *
 * and is answered by any number of "SEQ msg ..." and one "SEQ ok ..." or "SEQ err ...". Lines with
 * the sequence number 0 are events. Commands on one session run one after the other, those of
 * different sessions beside each other; close never waits for the session it ends.
 */
public final class Driver {
    /** ActiveMQ's own acknowledge mode, beside the four of JMS. */
    static final int INDIVIDUAL = 4;

    private static final ThreadFactory DAEMONS = task -> {
        Thread t = new Thread(task);
        t.setDaemon(true);
        return t;
    };
    private static final ExecutorService POOL = Executors.newCachedThreadPool(DAEMONS);

    private final Map<String, Connection> connections = new ConcurrentHashMap<>();
    private final Map<String, Lane> lanes = new ConcurrentHashMap<>();
    private final Map<String, Consumer> consumers = new ConcurrentHashMap<>();

    /** A session, the thread that serves it, and its producers by destination. */
    private static final class Lane {
        final String connection;
        final Session session;
        final ExecutorService thread = Executors.newSingleThreadExecutor(DAEMONS);
        final Map<String, MessageProducer> producers = new ConcurrentHashMap<>();

        Lane(String connection, Session session) {
            this.connection = connection;
            this.session = session;
        }
    }

    public static void main(String[] args) throws IOException {
        Driver driver = new Driver();
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        new Line(0, "ready").put("java", System.getProperty("java.version")).send();
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            Line command = Line.parse(text);
            driver.lane(command).execute(() -> driver.run(command));
        }
        Runtime.getRuntime().halt(0);
    }

    private Executor lane(Line command) {
        Lane lane = lanes.get(command.get("session"));
        return lane == null || command.word.equals("close") ? POOL : lane.thread;
    }

    private void run(Line command) {
        Line reply = new Line(command.seq, "ok");
        try {
            perform(command, reply);
            reply.send();
        } catch (Exception | LinkageError e) {
            failed(new Line(command.seq, "err"), e).send();
        }
    }

    static Line failed(Line to, Throwable e) {
        String text = e instanceof XAException
                ? "errorCode " + ((XAException) e).errorCode : e.getMessage();
        return to.put("class", e.getClass().getName()).put("text", text);
    }

    private void perform(Line c, Line reply) throws JMSException, XAException {
        switch (c.word) {
            case "connect": connect(c); break;
            case "start": connection(c).start(); break;
            case "stop": connection(c).stop(); break;
            case "session": session(c); break;
            case "consumer": consumer(c); break;
            case "receive": consumers.get(c.get("on")).receive(c); break;
            case "ack": consumers.get(c.get("on")).acknowledge(c); break;
            case "send": send(c, reply); break;
            case "request": request(c); break;
            case "browse": browse(c); break;
            case "commit": lane(c.get("session")).session.commit(); break;
            case "rollback": lane(c.get("session")).session.rollback(); break;
            case "recover": lane(c.get("session")).session.recover(); break;
            case "xa": Branches.perform(lane(c.get("session")).session, c, reply); break;
            case "unsubscribe": lane(c.get("session")).session.unsubscribe(c.get("name")); break;
            case "temp": temporary(c, reply); break;
            case "destroy": destroy(c); break;
            case "prefetch": prefetch(c); break;
            case "clientid": connection(c).setClientID(c.get("clientid")); break;
            case "close": close(c); break;
            default: throw new JMSException("the driver has no verb " + c.word);
        }
    }

    private Connection connection(Line c) throws JMSException {
        return connection(c.get("on"));
    }

    private Connection connection(String name) throws JMSException {
        Connection found = connections.get(name);
        if (found == null) {
            throw new JMSException("the driver has no connection " + name);
        }
        return found;
    }

    private Lane lane(String name) throws JMSException {
        Lane found = lanes.get(name);
        if (found == null) {
            throw new JMSException("the driver has no session " + name);
        }
        return found;
    }

    private void connect(Line c) throws JMSException {
        String id = c.get("id");
        ActiveMQConnectionFactory factory = c.yes("xa")
                ? new ActiveMQXAConnectionFactory(c.get("url"))
                : new ActiveMQConnectionFactory(c.get("url"));
        factory.setTrustAllPackages(true);
        Connection made = c.has("user")
                ? factory.createConnection(c.get("user"), c.get("password"))
                : factory.createConnection();
        connections.put(id, made);
        made.setExceptionListener(e ->
                failed(new Line(0, "exception").put("on", id), e).send());
        ((ActiveMQConnection) made).addTransportListener(new DefaultTransportListener() {
            @Override
            public void transportInterupted() {
                new Line(0, "transport").put("on", id).put("state", "interrupted").send();
            }

            @Override
            public void transportResumed() {
                new Line(0, "transport").put("on", id).put("state", "resumed").send();
            }
        });
        try {
            if (c.has("clientid")) {
                made.setClientID(c.get("clientid"));
            }
            if (!c.yes("stopped")) {
                made.start();
            }
        } catch (JMSException e) {
            connections.remove(id);
            POOL.execute(() -> closeQuietly(made));
            throw e;
        }
    }

    private static void closeQuietly(Connection c) {
        try {
            c.close();
        } catch (JMSException e) {
            // The caller has the exception that led here.
        }
    }

    private void session(Line c) throws JMSException {
        int mode;
        if (c.get("mode").equals("xa")) {
            Session made = ((XAConnection) connection(c)).createXASession();
            lanes.put(c.get("id"), new Lane(c.get("on"), made));
            return;
        }
        switch (c.get("mode")) {
            case "client": mode = Session.CLIENT_ACKNOWLEDGE; break;
            case "dups": mode = Session.DUPS_OK_ACKNOWLEDGE; break;
            case "individual": mode = INDIVIDUAL; break;
            case "transacted": mode = Session.SESSION_TRANSACTED; break;
            default: mode = Session.AUTO_ACKNOWLEDGE;
        }
        boolean transacted = mode == Session.SESSION_TRANSACTED;
        Session made = connection(c).createSession(transacted, mode);
        lanes.put(c.get("id"), new Lane(c.get("on"), made));
    }

    private void consumer(Line c) throws JMSException {
        Lane lane = lane(c.get("session"));
        consumers.put(c.get("id"), new Consumer(connection(lane.connection), lane.session, c));
    }

    private void send(Line c, Line reply) throws JMSException {
        Lane lane = lane(c.get("session"));
        Destination to = Messages.destination(c.get("dest"));
        String key = c.yes("anonymous") ? "" : c.get("dest");
        MessageProducer p = lane.producers.get(key);
        if (p == null) {
            p = lane.session.createProducer(c.yes("anonymous") ? null : to);
            lane.producers.put(key, p);
        }
        int delivery = c.yes("nonpersistent")
                ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT;
        long from = c.number("from", 0);
        StringBuilder ids = new StringBuilder();
        for (long i = from; i < from + c.number("n", 1); i++) {
            Message m = Messages.make(lane.session, c, i);
            int priority = (int) c.number("priority", 4);
            if (c.yes("anonymous")) {
                p.send(to, m, delivery, priority, c.number("ttl", 0));
            } else {
                p.send(m, delivery, priority, c.number("ttl", 0));
            }
            ids.append(ids.length() > 0 ? " " : "").append(m.getJMSMessageID());
        }
        reply.put("ids", ids);
    }

    /**
     * Sends with a temporary queue as reply-to and passes on replies. With fence=true a message to
     * that queue follows the question, and what came before it is all that the broker answered.
     */
    private void request(Line c) throws JMSException {
        Session s = lane(c.get("session")).session;
        Queue answers = s.createTemporaryQueue();
        MessageConsumer in = s.createConsumer(answers);
        MessageProducer out = s.createProducer(Messages.destination(c.get("dest")));
        try {
            Message question = Messages.make(s, c, 0);
            question.setJMSReplyTo(answers);
            out.send(question, DeliveryMode.NON_PERSISTENT, 4, 0);
            String fence = null;
            if (c.yes("fence")) {
                Message last = s.createMessage();
                s.createProducer(answers).send(last, DeliveryMode.NON_PERSISTENT, 4, 0);
                fence = last.getJMSMessageID();
            }
            for (long n = c.number("n", 1); n > 0; n--) {
                Message m = in.receive(c.number("wait", 5000));
                if (m == null && fence != null) {
                    throw new JMSException("the message behind the question did not come back");
                }
                if (m == null || m.getJMSMessageID().equals(fence)) {
                    return;
                }
                Messages.describe(new Line(c.seq, "msg"), m).send();
            }
        } finally {
            out.close();
            in.close();
            ((javax.jms.TemporaryQueue) answers).delete();
        }
    }

    private void browse(Line c) throws JMSException {
        Session s = lane(c.get("session")).session;
        Queue q = (Queue) Messages.destination(c.get("dest"));
        QueueBrowser b = s.createBrowser(q, c.has("selector") ? c.get("selector") : null);
        for (Enumeration<?> e = b.getEnumeration(); e.hasMoreElements(); ) {
            Messages.describe(new Line(c.seq, "msg"), (Message) e.nextElement()).send();
        }
        b.close();
    }

    private void temporary(Line c, Line reply) throws JMSException {
        Session s = lane(c.get("session")).session;
        Destination d = c.yes("topic") ? s.createTemporaryTopic() : s.createTemporaryQueue();
        reply.put("dest", d);
    }

    private void prefetch(Line c) throws JMSException {
        consumers.get(c.get("on")).prefetch(connection(c.get("conn")), c);
    }

    private void destroy(Line c) throws JMSException {
        ActiveMQDestination d = (ActiveMQDestination) Messages.destination(c.get("dest"));
        ActiveMQConnection connection = (ActiveMQConnection) connection(c);
        if (d instanceof ActiveMQTempDestination) {
            connection.deleteTempDestination((ActiveMQTempDestination) d);
        } else {
            connection.destroyDestination(d);
        }
    }

    private void close(Line c) throws JMSException {
        String on = c.get("on");
        Connection connection = connections.remove(on);
        Lane lane = lanes.remove(on);
        Consumer consumer = consumers.remove(on);
        if (connection != null) {
            lanes.values().removeIf(l -> {
                boolean gone = l.connection.equals(on);
                if (gone) {
                    l.thread.shutdown();
                }
                return gone;
            });
            connection.close();
        } else if (lane != null) {
            lane.session.close();
            lane.thread.shutdown();
        } else if (consumer != null) {
            consumer.jms.close();
        } else {
            throw new JMSException("the driver has nothing open by the name " + on);
        }
    }
}
