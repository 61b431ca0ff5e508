package org.apache.activemq.broker;

import hopwire.Elsewhere;
import java.io.File;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.activemq.Service;
import org.apache.activemq.broker.jmx.ManagementContext;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.store.PersistenceAdapter;
import org.apache.activemq.transport.TransportServer;
import org.apache.activemq.usage.SystemUsage;
import org.apache.activemq.util.IOExceptionHandler;
import org.apache.activemq.util.IntrospectionSupport;

/**
 * Stands in for the broker that a test makes in its own JVM: it starts nothing, and its connectors
 * lead to the broker that runs elsewhere. It has the methods that make a broker to connect to, and
 * no others: a test that asks for more ends with a NoSuchMethodError, as it is no test of a
 * connection.
 */
public class BrokerService implements Service {
  private final List<TransportConnector> connectors = new ArrayList<>();
  private String name = "localhost";
  private boolean persistent = true;
  private boolean started;
  private boolean stopped;
  private final SystemUsage usage = new SystemUsage();
  private ManagementContext management;
  private PersistenceAdapter store;

  /** Sets what a test wants; what is left cannot be had of a broker elsewhere. */
  public static void configure(BrokerService broker, Map<String, ?> wanted) {
    Map<String, Object> left = new HashMap<>(wanted);
    IntrospectionSupport.setProperties(broker, left);
    if (!left.isEmpty()) {
      throw new UnsupportedOperationException("a broker with " + left);
    }
  }

  public TransportConnector addConnector(String address) throws Exception {
    return addConnector(URI.create(address));
  }

  public TransportConnector addConnector(URI address) throws Exception {
    return addConnector(new Connector(address));
  }

  public TransportConnector addConnector(TransportConnector connector) throws Exception {
    TransportConnector ours =
        connector instanceof Connector ? connector : new Connector(connector.getUri());
    if (connector.getName() != null) {
      ours.setName(connector.getName());
    }
    Elsewhere.listens(ours.getUri());
    connectors.add(ours);
    return ours;
  }

  public List<TransportConnector> getTransportConnectors() {
    return connectors;
  }

  public TransportConnector getTransportConnectorByScheme(String scheme) {
    for (TransportConnector c : connectors) {
      if (c.getUri().getScheme().equals(scheme)) {
        return c;
      }
    }
    return null;
  }

  public TransportConnector getTransportConnectorByName(String wanted) {
    for (TransportConnector c : connectors) {
      if (wanted.equals(c.getName())) {
        return c;
      }
    }
    return null;
  }

  public TransportConnector getConnectorByName(String wanted) {
    return getTransportConnectorByName(wanted);
  }

  public URI getVmConnectorURI() {
    return URI.create("vm://" + name);
  }

  public String getDefaultSocketURIString() {
    return Elsewhere.broker().toString();
  }

  public String getBrokerName() {
    return name;
  }

  public void setBrokerName(String name) {
    this.name = name;
  }

  public ManagementContext getManagementContext() {
    if (management == null) {
      management = new ManagementContext();
    }
    return management;
  }

  public void setManagementContext(ManagementContext management) {
    this.management = management;
  }

  @Override
  public void start() throws Exception {
    started = true;
    stopped = false;
    Elsewhere.started.incrementAndGet();
  }

  public void start(boolean force) throws Exception {
    start();
  }

  @Override
  public void stop() throws Exception {
    stopped = true;
  }

  public boolean waitUntilStarted() {
    return started;
  }

  public boolean waitUntilStarted(long timeout) {
    return started;
  }

  public void waitUntilStopped() {}

  public boolean isStarted() {
    return started && !stopped;
  }

  public boolean isStopped() {
    return stopped;
  }

  public boolean isPersistent() {
    return persistent;
  }

  public void setPersistent(boolean persistent) {
    this.persistent = persistent;
  }

  // What follows is where a broker keeps its things, how it is watched, and what its memory and
  // its policies are. The broker elsewhere has its own: a test whose outcome is another then does
  // not pass.

  public void setUseJmx(boolean ignored) {}

  public void setEnableStatistics(boolean ignored) {}

  public void setDataDirectory(String ignored) {}

  public void setDataDirectoryFile(File ignored) {}

  public void setTmpDataDirectory(File ignored) {}

  public void setPersistenceAdapter(PersistenceAdapter adapter) {
    store = adapter;
  }

  /** A store that no broker has: who looks into it finds nothing. */
  public PersistenceAdapter getPersistenceAdapter() {
    return store;
  }

  public File getBrokerDataDirectory() {
    return new File(System.getProperty("basedir"), name);
  }

  public void setBrokerId(String ignored) {}

  public void setIoExceptionHandler(IOExceptionHandler ignored) {}

  public void setDeleteAllMessagesOnStartup(boolean ignored) {}

  public void deleteAllMessages() {}

  public void setUseShutdownHook(boolean ignored) {}

  public void setDedicatedTaskRunner(boolean ignored) {}

  public void setMonitorConnectionSplits(boolean ignored) {}

  public void setAdvisorySupport(boolean ignored) {}

  public void setKeepDurableSubsActive(boolean ignored) {}

  public void setSchedulerSupport(boolean ignored) {}

  public void setDestinationPolicy(PolicyMap ignored) {}

  public void setSystemUsage(SystemUsage ignored) {}

  public SystemUsage getSystemUsage() {
    return usage;
  }

  @Override
  public String toString() {
    return "the broker at " + Elsewhere.broker();
  }

  /** A connector of the broker elsewhere, by the address that the test gave it. */
  private static final class Connector extends TransportConnector {
    private final URI address;

    Connector(URI address) {
      this.address = address;
    }

    @Override
    public URI getUri() {
      return address;
    }

    @Override
    public URI getConnectUri() {
      return address.getScheme().equals("vm") ? address : Elsewhere.broker();
    }

    /** A server that knows its address alone. */
    @Override
    public TransportServer getServer() {
      return (TransportServer)
          Proxy.newProxyInstance(
              getClass().getClassLoader(),
              new Class<?>[] {TransportServer.class},
              (proxy, method, arguments) -> {
                if (method.getName().equals("getConnectURI")) {
                  return getConnectUri();
                }
                throw new UnsupportedOperationException(method + " of a server elsewhere");
              });
    }

    @Override
    public URI getPublishableConnectURI() {
      return getConnectUri();
    }

    @Override
    public String getPublishableConnectString() {
      return getConnectUri().toString();
    }
  }
}
