import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Enumeration;
import java.util.Map;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ConnectionInfo;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.DataStructure;
import org.apache.activemq.command.DestinationInfo;
import org.apache.activemq.command.ProducerInfo;
import org.apache.activemq.command.RemoveInfo;
import org.apache.activemq.command.RemoveSubscriptionInfo;

/** Messages to and from pairs. Values that have a type are written TYPE:VALUE. */
final class Messages {
    private Messages() {}

    /** Makes message number i of a send: {} in the body and in properties becomes i. */
    static Message make(Session session, Line from, long i) throws JMSException {
        String body = fill(from.get("body"), i);
        Message m;
        switch (from.get("kind")) {
            case "bytes":
                m = session.createBytesMessage();
                ((BytesMessage) m).writeBytes(body.getBytes(StandardCharsets.UTF_8));
                break;
            case "map":
                m = session.createMapMessage();
                for (Map.Entry<String, String> e : from.below("map.").entrySet()) {
                    ((MapMessage) m).setObject(e.getKey(), typed(fill(e.getValue(), i)));
                }
                break;
            case "stream":
                m = session.createStreamMessage();
                for (String value : from.below("stream.").values()) {
                    ((StreamMessage) m).writeObject(typed(fill(value, i)));
                }
                break;
            case "object":
                m = session.createObjectMessage(body);
                break;
            case "none":
                m = session.createMessage();
                break;
            default:
                m = session.createTextMessage(body);
        }
        for (Map.Entry<String, String> e : from.below("prop.").entrySet()) {
            m.setObjectProperty(e.getKey(), typed(fill(e.getValue(), i)));
        }
        if (from.has("corr")) {
            m.setJMSCorrelationID(fill(from.get("corr"), i));
        }
        if (from.has("corrbytes")) {
            m.setJMSCorrelationIDAsBytes(Base64.getDecoder().decode(from.get("corrbytes")));
        }
        if (from.has("type")) {
            m.setJMSType(from.get("type"));
        }
        if (from.has("replyto")) {
            m.setJMSReplyTo(destination(from.get("replyto")));
        }
        return m;
    }

    /** Adds what a receiver sees of a message to a line. */
    static Line describe(Line to, Message m) throws JMSException {
        to.put("id", m.getJMSMessageID()).put("dest", m.getJMSDestination());
        to.put("redelivered", m.getJMSRedelivered()).put("priority", m.getJMSPriority());
        to.put("persistent", m.getJMSDeliveryMode() == DeliveryMode.PERSISTENT);
        to.put("expires", m.getJMSExpiration()).put("timestamp", m.getJMSTimestamp());
        if (m.getJMSCorrelationID() != null) {
            to.put("corr", m.getJMSCorrelationID());
        }
        if (m.getJMSType() != null) {
            to.put("type", m.getJMSType());
        }
        if (m.getJMSReplyTo() != null) {
            to.put("replyto", m.getJMSReplyTo());
        }
        for (Enumeration<?> e = m.getPropertyNames(); e.hasMoreElements(); ) {
            String name = (String) e.nextElement();
            to.put("prop." + name, show(m.getObjectProperty(name)));
        }
        DataStructure data = ((org.apache.activemq.command.Message) m).getDataStructure();
        if (data != null) {
            to.put("data", data.getClass().getSimpleName());
            about(to, data);
        }
        return body(to, m);
    }

    /** Adds what an advisory is about. */
    private static void about(Line to, DataStructure data) throws JMSException {
        if (data instanceof ConnectionInfo) {
            to.put("about", ((ConnectionInfo) data).getClientId());
        } else if (data instanceof DestinationInfo) {
            DestinationInfo info = (DestinationInfo) data;
            to.put("about", (info.isAddOperation() ? "+" : "-") + info.getDestination());
        } else if (data instanceof ConsumerInfo) {
            ConsumerInfo info = (ConsumerInfo) data;
            to.put("about", info.getDestination() + " prefetch=" + info.getPrefetchSize()
                    + " selector=" + info.getSelector() + " noLocal=" + info.isNoLocal()
                    + " exclusive=" + info.isExclusive() + " priority=" + info.getPriority()
                    + " retroactive=" + info.isRetroactive() + " browser=" + info.isBrowser()
                    + " durable=" + info.getSubscriptionName() + " client=" + info.getClientId());
        } else if (data instanceof ProducerInfo) {
            ProducerInfo info = (ProducerInfo) data;
            to.put("about", info.getDestination() + " window=" + info.getWindowSize());
        } else if (data instanceof RemoveInfo) {
            to.put("about", ((RemoveInfo) data).getObjectId().getClass().getSimpleName());
        } else if (data instanceof RemoveSubscriptionInfo) {
            RemoveSubscriptionInfo info = (RemoveSubscriptionInfo) data;
            to.put("about", info.getClientId() + " " + info.getSubscriptionName());
        } else if (data instanceof org.apache.activemq.command.Message) {
            org.apache.activemq.command.Message m = (org.apache.activemq.command.Message) data;
            boolean body = m.getContent() != null || m instanceof TextMessage
                    && ((TextMessage) m).getText() != null;
            to.put("about", m.getMessageId() + " " + m.getDestination()
                    + " original=" + m.getOriginalDestination() + " body=" + body);
        }
    }

    private static Line body(Line to, Message m) throws JMSException {
        if (m instanceof TextMessage) {
            String text = ((TextMessage) m).getText();
            return text == null ? to.put("kind", "text") : to.put("kind", "text").put("body", text);
        }
        if (m instanceof BytesMessage) {
            BytesMessage b = (BytesMessage) m;
            byte[] bytes = new byte[(int) b.getBodyLength()];
            b.readBytes(bytes);
            return to.put("kind", "bytes").put("body", new String(bytes, StandardCharsets.UTF_8));
        }
        if (m instanceof MapMessage) {
            MapMessage map = (MapMessage) m;
            for (Enumeration<?> e = map.getMapNames(); e.hasMoreElements(); ) {
                String name = (String) e.nextElement();
                to.put("map." + name, show(map.getObject(name)));
            }
            return to.put("kind", "map");
        }
        if (m instanceof StreamMessage) {
            return stream(to, (StreamMessage) m);
        }
        if (m instanceof ObjectMessage) {
            return to.put("kind", "object").put("body", ((ObjectMessage) m).getObject());
        }
        return to.put("kind", "none");
    }

    private static Line stream(Line to, StreamMessage m) throws JMSException {
        int i = 0;
        try {
            for (;;) {
                to.put(String.format("stream.%03d", i), show(m.readObject()));
                i++;
            }
        } catch (javax.jms.MessageEOFException end) {
            return to.put("kind", "stream");
        }
    }

    static Destination destination(String name) {
        return ActiveMQDestination.createDestination(name, ActiveMQDestination.QUEUE_TYPE);
    }

    private static String fill(String pattern, long i) {
        return pattern.replace("{}", Long.toString(i));
    }

    private static Object typed(String text) {
        int colon = text.indexOf(':');
        String value = text.substring(colon + 1);
        switch (text.substring(0, colon)) {
            case "bool": return Boolean.valueOf(value);
            case "byte": return Byte.valueOf(value);
            case "short": return Short.valueOf(value);
            case "int": return Integer.valueOf(value);
            case "long": return Long.valueOf(value);
            case "float": return Float.valueOf(value);
            case "double": return Double.valueOf(value);
            case "char": return value.charAt(0);
            case "bytes": return Base64.getDecoder().decode(value);
            default: return value;
        }
    }

    private static String show(Object o) {
        if (o == null) {
            return "null:";
        }
        if (o instanceof byte[]) {
            return "bytes:" + Base64.getEncoder().encodeToString((byte[]) o);
        }
        String type = o.getClass().getSimpleName();
        switch (type) {
            case "Boolean": return "bool:" + o;
            case "Integer": return "int:" + o;
            case "Character": return "char:" + o;
            default: return type.toLowerCase() + ":" + o;
        }
    }
}
