package org.apache.activemq.broker;

import java.net.URI;
import org.apache.activemq.util.URISupport;
import org.apache.activemq.util.URISupport.CompositeData;

/** Makes stand-ins of the brokers that addresses of the scheme broker describe. */
public final class BrokerFactory {
  private BrokerFactory() {}

  public static BrokerService createBroker(String address) throws Exception {
    return createBroker(URI.create(address), false);
  }

  public static BrokerService createBroker(URI address) throws Exception {
    return createBroker(address, false);
  }

  public static BrokerService createBroker(String address, boolean start) throws Exception {
    return createBroker(URI.create(address), start);
  }

  public static BrokerService createBroker(URI address, boolean start) throws Exception {
    if (!"broker".equals(address.getScheme())) {
      throw new UnsupportedOperationException("a broker with a file of its own: " + address);
    }
    CompositeData parts = URISupport.parseComposite(address);
    BrokerService broker = new BrokerService();
    BrokerService.configure(broker, parts.getParameters());
    if (parts.getPath() != null && !parts.getPath().isEmpty()) {
      broker.setBrokerName(parts.getPath());
    }
    for (URI connector : parts.getComponents()) {
      broker.addConnector(connector);
    }
    if (start) {
      broker.start();
    }
    return broker;
  }
}
