import java.util.Enumeration;
import java.util.Properties;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import junit.framework.AssertionFailedError;
import junit.framework.Test;
import junit.framework.TestCase;
import junit.framework.TestListener;
import junit.framework.TestResult;
import junit.framework.TestSuite;

/**
 * Runs every test class of the JMS conformance tests against a broker and says a line for each test
 * and each that failed. Arguments: the broker's URL and the jar of the tests.
 */
public final class Conformance implements TestListener {
  private Conformance() {}

  public static void main(String[] arguments) throws Exception {
    System.setProperty("hopwire.url", arguments[0]);
    TestSuite all = new TestSuite();
    for (String name : classes(arguments[1])) {
      all.addTestSuite(Class.forName(name).asSubclass(TestCase.class));
    }
    TestResult result = new TestResult();
    result.addListener(new Conformance());
    all.run(result);
    System.exit(0); // connections that a failed test left open have threads
  }

  /** The names of the test classes in a jar, sorted. */
  private static TreeSet<String> classes(String jar) throws Exception {
    TreeSet<String> names = new TreeSet<>();
    try (JarFile file = new JarFile(jar)) {
      for (Enumeration<JarEntry> e = file.entries(); e.hasMoreElements(); ) {
        String name = e.nextElement().getName();
        if (name.endsWith("Test.class")) {
          names.add(name.substring(0, name.length() - ".class".length()).replace('/', '.'));
        }
      }
    }
    return names;
  }

  private static String name(Test test) {
    String type = test.getClass().getName();
    return type.substring(type.lastIndexOf('.') + 1) + "." + ((TestCase) test).getName();
  }

  private static void say(String word, Test test, String more) {
    System.out.println((word + " " + name(test) + " " + more).trim().replace('\n', ' '));
  }

  @Override
  public void startTest(Test test) {
    say("run", test, "");
  }

  @Override
  public void endTest(Test test) {}

  @Override
  public void addError(Test test, Throwable error) {
    say("failed", test, error.toString());
  }

  @Override
  public void addFailure(Test test, AssertionFailedError error) {
    say("failed", test, error.toString());
  }
}
