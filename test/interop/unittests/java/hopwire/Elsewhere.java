package hopwire;

import java.net.URI;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.transport.Transport;
import org.apache.activemq.transport.tcp.TcpTransportFactory;
import org.apache.activemq.util.IntrospectionSupport;
import org.apache.activemq.util.URISupport;

/**
 * The transports vm and tcp of a test that believes to have its broker in its own JVM: they dial
 * the broker that runs elsewhere. The scheme vm always does; tcp does so for the ports that the
 * test gave to brokers, and for the port that clients take by default. Other addresses are what
 * they say.
 */
public class Elsewhere extends TcpTransportFactory {
  /** How many connections were dialled to the broker, and how many brokers a test started. */
  public static final AtomicInteger dialled = new AtomicInteger();

  public static final AtomicInteger started = new AtomicInteger();

  private static final Set<Integer> ports = ConcurrentHashMap.newKeySet();

  static {
    ports.add(61616);
  }

  /** The broker's URL. */
  public static URI broker() {
    return URI.create(System.getProperty("hopwire.url"));
  }

  /** Says that the test gave a broker this address. */
  public static void listens(URI address) {
    if (address.getPort() > 0) {
      ports.add(address.getPort());
    }
  }

  private static URI where(URI asked) throws Exception {
    if (asked.getScheme().equals("vm")) {
      configure(asked);
      dialled.incrementAndGet();
      return broker();
    }
    if (!ports.contains(asked.getPort()) && asked.getPort() != broker().getPort()) {
      return asked;
    }
    dialled.incrementAndGet();
    URI b = broker();
    return new URI(
        asked.getScheme(), null, b.getHost(), b.getPort(), null, asked.getQuery(), null);
  }

  /** Refuses a vm: address that asks for a broker which the stand-in cannot be. */
  private static void configure(URI asked) throws Exception {
    Map<String, String> options = URISupport.parseParameters(asked);
    Map<String, Object> wanted = IntrospectionSupport.extractProperties(options, "broker.");
    BrokerService.configure(new BrokerService(), wanted);
    if (options.containsKey("brokerConfig")) {
      throw new UnsupportedOperationException("a broker with a file of its own: " + asked);
    }
  }

  @Override
  public Transport doConnect(URI location) throws Exception {
    return super.doConnect(where(location));
  }

  @Override
  public Transport doConnect(URI location, Executor executor) throws Exception {
    return super.doConnect(where(location));
  }

  @Override
  public Transport doCompositeConnect(URI location) throws Exception {
    return super.doCompositeConnect(where(location));
  }

  @Override
  public Transport doCompositeConnect(URI location, Executor executor) throws Exception {
    return super.doCompositeConnect(where(location));
  }
}
