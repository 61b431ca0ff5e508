package hopwire;

import java.io.FileWriter;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import junit.framework.Test;
import junit.framework.TestCase;
import junit.framework.TestSuite;
import org.junit.internal.runners.JUnit38ClassRunner;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs methods of one class of tests and writes a line for each: a word, how many connections to
 * the broker it made, how many brokers it believes to have started, its name, and what went wrong.
 * Arguments: the class, the file for the lines, the seconds that a method may take, and +NAME for
 * each method to run, with its parameters or without, or -NAME for each to leave out. A method that
 * takes longer ends the JVM. With 0 seconds nothing is run, and the lines are the names.
 */
public final class Run extends RunListener {
  private static Class<?> asked;

  private final PrintWriter lines;
  private final int seconds;
  private final ScheduledExecutorService clock = Executors.newScheduledThreadPool(1);
  private final Map<Description, Failure> failures = new HashMap<>();
  private final Map<String, Integer> names = new HashMap<>();
  private ScheduledFuture<?> alarm;
  private String name;
  private int dialled;
  private int started;

  private Run(String file, int seconds) throws Exception {
    lines = new PrintWriter(new FileWriter(file, true), true);
    this.seconds = seconds;
  }

  public static void main(String[] arguments) throws Exception {
    Set<String> names = new HashSet<>(Arrays.asList(arguments).subList(3, arguments.length));
    boolean only = names.stream().anyMatch(n -> n.startsWith("+"));
    asked = Class.forName(arguments[0]);
    Run run = new Run(arguments[1], Integer.parseInt(arguments[2]));
    Predicate<Description> wanted =
        d ->
            only
                ? names.contains("+" + plain(d)) || names.contains("+" + name(d))
                : !names.contains("-" + plain(d)) && !names.contains("-" + name(d));
    Request some = run.request(wanted);
    if (run.seconds == 0) {
      run.list(some.getRunner().getDescription());
      Runtime.getRuntime().halt(0);
    }
    run.watch("initializationError");
    JUnitCore core = new JUnitCore();
    core.addListener(run);
    core.run(some);
    run.lines.println("end");
    Runtime.getRuntime().halt(0); // connections that a test left open have threads
  }

  /** What is wanted of the class. Suites in a suite are laid flat: JUnit looks into none of them. */
  private Request request(Predicate<Description> wanted) throws Exception {
    Method suite;
    try {
      suite = asked.getMethod("suite");
    } catch (NoSuchMethodException e) {
      return Request.aClass(asked).filterWith(new Wanted(wanted));
    }
    TestSuite flat = new TestSuite(asked.getName());
    lay((Test) suite.invoke(null), flat, wanted);
    return Request.runner(new JUnit38ClassRunner(flat));
  }

  private static void lay(Test test, TestSuite flat, Predicate<Description> wanted) {
    if (test instanceof TestSuite) {
      Collections.list(((TestSuite) test).tests()).forEach(t -> lay(t, flat, wanted));
    } else if (!(test instanceof TestCase)
        || wanted.test(
            Description.createTestDescription(test.getClass(), ((TestCase) test).getName()))) {
      flat.addTest(test);
    }
  }

  private static final class Wanted extends Filter {
    private final Predicate<Description> wanted;

    Wanted(Predicate<Description> wanted) {
      this.wanted = wanted;
    }

    @Override
    public boolean shouldRun(Description d) {
      return !d.isTest() || wanted.test(d);
    }

    @Override
    public String describe() {
      return "those of the list";
    }
  }

  private void list(Description d) {
    if (d.isTest()) {
      lines.println(name(d));
    }
    d.getChildren().forEach(this::list);
  }

  /** The name of a method, with that of its class where a suite is of several. */
  private static String name(Description d) {
    String name = d.getMethodName() == null ? d.getDisplayName() : d.getMethodName();
    if (d.getTestClass() != null && d.getTestClass() != asked) {
      name = d.getTestClass().getSimpleName() + "." + name;
    }
    return name.replaceAll("[\\s`|]+", "_");
  }

  /** The name of a method without the parameters that it runs with. */
  private static String plain(Description d) {
    return name(d).replaceAll("(_\\{|\\[).*", "");
  }

  private void watch(String name) {
    this.name = name;
    dialled = Elsewhere.dialled.get();
    started = Elsewhere.started.get();
    alarm =
        clock.schedule(
            () -> {
              say("hung", "more than " + seconds + " s");
              Thread.getAllStackTraces()
                  .forEach((t, stack) -> System.out.println(t + " " + Arrays.toString(stack)));
              Runtime.getRuntime().halt(1);
            },
            seconds,
            TimeUnit.SECONDS);
  }

  private synchronized void say(String word, String more) {
    lines.printf(
        "%s %d %d %s %s%n",
        word,
        Elsewhere.dialled.get() - dialled,
        Elsewhere.started.get() - started,
        name,
        more.replaceAll("\\s+", " "));
  }

  @Override
  public void testStarted(Description d) {
    alarm.cancel(false);
    int n = names.merge(name(d), 1, Integer::sum);
    watch(n == 1 ? name(d) : name(d) + "#" + n);
    System.out.println("=== " + name);
  }

  @Override
  public void testFailure(Failure f) {
    if (f.getDescription().isTest() && alarm != null && !f.getDescription().getDisplayName()
        .startsWith("initializationError")) {
      failures.put(f.getDescription(), f);
    } else {
      say("failed", f.toString());
    }
    System.out.println(f.getTrace());
  }

  @Override
  public void testAssumptionFailure(Failure f) {
    failures.put(f.getDescription(), f);
  }

  @Override
  public void testIgnored(Description d) {
    lines.printf("ignored 0 0 %s%n", name(d));
  }

  @Override
  public void testFinished(Description d) {
    alarm.cancel(false);
    Failure f = failures.remove(d);
    say(f == null ? "passed" : "failed", f == null ? "" : f.getException().toString());
    watch("between");
  }
}
