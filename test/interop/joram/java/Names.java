import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NameNotFoundException;
import javax.naming.NamingException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.objectweb.jtests.jms.admin.Admin;

/**
 * What the conformance tests administer: names of factories and destinations. The broker runs
 * already. A destination that is created anew gets a name of its own at the broker, so that no test
 * finds what another left.
 */
public final class Names implements Admin {
  private static final AtomicInteger made = new AtomicInteger();
  private final Map<String, Object> bound = new HashMap<>();

  private final class Lookup extends InitialContext {
    Lookup() throws NamingException {
      super(true);
    }

    @Override
    public Object lookup(String name) throws NamingException {
      Object found = bound.get(name);
      if (found == null) {
        throw new NameNotFoundException(name);
      }
      return found;
    }

    @Override
    public void close() {}
  }

  private void bindFactory(String name) {
    ActiveMQConnectionFactory factory =
        new ActiveMQConnectionFactory(System.getProperty("hopwire.url"));
    factory.setTrustAllPackages(true); // a test sends a java.util.Vector
    factory.setNestedMapAndListEnabled(false); // it is more than JMS allows
    bound.put(name, factory);
  }

  private static String fresh(String name) {
    return name + "." + made.incrementAndGet();
  }

  @Override
  public String getName() {
    return "Hopwire";
  }

  @Override
  public Context createContext() throws NamingException {
    return new Lookup();
  }

  @Override
  public void createConnectionFactory(String name) {
    bindFactory(name);
  }

  @Override
  public void createQueueConnectionFactory(String name) {
    bindFactory(name);
  }

  @Override
  public void createTopicConnectionFactory(String name) {
    bindFactory(name);
  }

  @Override
  public void createQueue(String name) {
    bound.put(name, new ActiveMQQueue(fresh(name)));
  }

  @Override
  public void createTopic(String name) {
    bound.put(name, new ActiveMQTopic(fresh(name)));
  }

  @Override
  public void deleteQueue(String name) {
    bound.remove(name);
  }

  @Override
  public void deleteTopic(String name) {
    bound.remove(name);
  }

  @Override
  public void deleteConnectionFactory(String name) {
    bound.remove(name);
  }

  @Override
  public void deleteQueueConnectionFactory(String name) {
    bound.remove(name);
  }

  @Override
  public void deleteTopicConnectionFactory(String name) {
    bound.remove(name);
  }

  @Override
  public void startServer() {}

  @Override
  public void stopServer() {}

  @Override
  public void start() {}

  @Override
  public void stop() {}
}
