// A Java program that is compiled and run by one `java`: interpreter, JIT, threads, garbage collection.
import java.util.*;
import java.util.stream.*;

public class Main {
  static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
  }

  public static void main(String[] arguments) throws Exception {
    System.out.println(fibonacci(22));
    Map<String, Integer> counts = new TreeMap<>();
    for (int i = 0; i < 20000; i++) counts.merge("k" + i % 13, i, Integer::sum);
    System.out.println(counts);
    System.out.println(IntStream.range(0, 5000).parallel().mapToDouble(Math::sqrt).sum() > 235000);
    Thread thread = new Thread(() -> System.out.println("in a thread"));
    thread.start();
    thread.join();
    try {
      Object nothing = null;
      nothing.hashCode();
    } catch (NullPointerException error) {
      System.out.println("null pointer");
    }
    System.exit(6);
  }
}
