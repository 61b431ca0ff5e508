import java.util.LinkedHashMap;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ConsumerControl;

/** A consumer that either is asked for each message or tells of each as it comes. */
final class Consumer {
    final MessageConsumer jms;
    private final Connection connection;
    private final Session session;
    private final String name;
    private final ActiveMQDestination destination;
    private String does; // what the listener does on its first message
    private final boolean holds;
    private final boolean replies;
    private final long delayMillis;
    private long failures;
    private final Map<String, Message> held = new LinkedHashMap<>();

    Consumer(Connection connection, Session session, Line from) throws JMSException {
        this.connection = connection;
        this.session = session;
        does = from.get("does");
        name = from.get("id");
        int mode = session.getAcknowledgeMode();
        holds = mode == Session.CLIENT_ACKNOWLEDGE || mode == Driver.INDIVIDUAL;
        replies = from.yes("reply");
        delayMillis = from.number("delay", 0);
        failures = from.number("fail", 0);
        Destination d = Messages.destination(from.get("dest"));
        destination = (ActiveMQDestination) d;
        String selector = from.has("selector") ? from.get("selector") : null;
        if (from.has("durable")) {
            jms = session.createDurableSubscriber(
                    (Topic) d, from.get("durable"), selector, from.yes("nolocal"));
        } else {
            jms = session.createConsumer(d, selector, from.yes("nolocal"));
        }
        if (!from.yes("pull")) {
            jms.setMessageListener(this::heard);
        }
    }

    private void heard(Message m) {
        try {
            hold(m);
            Messages.describe(new Line(0, "msg").put("on", name), m).send();
            if (delayMillis > 0) {
                Thread.sleep(delayMillis);
            }
            if (replies && m.getJMSReplyTo() != null) {
                reply(m);
            }
            act();
        } catch (JMSException | InterruptedException e) {
            Driver.failed(new Line(0, "exception").put("on", name), e).send();
        }
        if (failures > 0) {
            failures--;
            throw new IllegalStateException("this listener was asked to fail");
        }
    }

    private void act() throws JMSException {
        String what = does;
        does = "";
        switch (what) {
            case "close": jms.close(); break;
            case "close session": session.close(); break;
            case "close connection": connection.close(); break;
            case "stop connection": connection.stop(); break;
            case "recover": session.recover(); break;
            case "rollback": session.rollback(); break;
            default:
        }
    }

    /** Asks the broker for another prefetch of a consumer that is there. */
    void prefetch(Connection c, Line command) throws JMSException {
        ConsumerControl control = new ConsumerControl();
        control.setConsumerId(((ActiveMQMessageConsumer) jms).getConsumerId());
        control.setDestination(destination);
        control.setPrefetch((int) command.number("n", 0));
        ((ActiveMQConnection) c).syncSendPacket(control);
    }

    private void reply(Message m) throws JMSException {
        MessageProducer p = session.createProducer(m.getJMSReplyTo());
        Line answer = new Line(0, "reply").put("corr", m.getJMSMessageID());
        p.send(Messages.make(session, answer.put("body", "reply to " + m.getJMSMessageID()), 0));
        p.close();
    }

    void receive(Line command) throws JMSException {
        long wait = command.number("wait", 0);
        for (long n = command.number("n", 1); n > 0; n--) {
            Message m = wait > 0 ? jms.receive(wait) : jms.receiveNoWait();
            if (m == null) {
                return;
            }
            hold(m);
            Messages.describe(new Line(command.seq, "msg"), m).send();
        }
    }

    /** Copies of one message to several destinations have one id. */
    private static String key(Message m) throws JMSException {
        return m.getJMSMessageID() + " " + m.getJMSDestination();
    }

    private void hold(Message m) throws JMSException {
        if (holds) {
            synchronized (held) {
                held.remove(key(m));
                held.put(key(m), m);
            }
        }
    }

    /** Acknowledges one message, or the last one received: with CLIENT_ACKNOWLEDGE that is all. */
    void acknowledge(Line command) throws JMSException {
        Message chosen = null;
        synchronized (held) {
            if (command.has("msgid")) {
                for (Map.Entry<String, Message> e : held.entrySet()) {
                    if (chosen == null && (e.getKey() + " ").startsWith(command.get("msgid") + " ")) {
                        chosen = e.getValue();
                    }
                }
                held.values().remove(chosen);
            } else {
                for (Message m : held.values()) {
                    chosen = m;
                }
                held.clear();
            }
        }
        if (chosen == null) {
            throw new JMSException("consumer " + name + " holds no such message");
        }
        chosen.acknowledge();
    }
}
