package org.apache.spark.barograph.plugin

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.{Cuts, Orders}
import org.apache.spark.barograph.telemetry.ProcessUse
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class ReporterTest {
  private val asked = new LinkedBlockingQueue[Report]()

  /** Reports with answers from `answer`, until `enough` were asked for. */
  private def run(enough: Int)(answer: Int => AnyRef): Seq[Report] = {
    var calls = 0
    val reporter = new Reporter("executor-1", message => {
      calls += 1
      asked.add(Messages.reportIn(message))
      answer(calls)
    }, () => ProcessUse(1L, 2L), () => Nil, () => (), everyMs = 1L)
    reporter.start()
    try Seq.fill(enough)(asked.poll(30, TimeUnit.SECONDS)) finally reporter.close()
  }

  @Test def anIdleExecutorIsHeardOf(): Unit =
    assertEquals(Seq("executor-1", "executor-1"), run(2)(_ => null).map(_.executor))

  @Test def itSurvivesEveryError(): Unit = {
    val errors = Seq(
      new RuntimeException("a failure"), new NoClassDefFoundError("a class"), new StackOverflowError(),
      new OutOfMemoryError("for a test"), new LinkageError("a link"), new InterruptedException("a wait"))
    val found = run(errors.size + 2)(n => if (n <= errors.size) throw errors(n - 1) else null)
    assertTrue(found.forall(_ != null))
  }

  @Test def theAnswerIsFollowed(): Unit = {
    val orders = Orders(Cuts.version + 1, Map("reporter-run" -> 4L), Set.empty, Map.empty)
    val found = run(2)(n => if (n == 1) Messages.orders(orders) else null)
    assertEquals(orders.version, found(1).heard)
    assertEquals(4L, Cuts.of("reporter-run").epoch)
  }

  @Test def anAnswerThatCannotBeReadIsDropped(): Unit = {
    val before = Dropped.total
    val found = run(3)(n => if (n == 1) Array[Byte](99, 3, 1) else "not even bytes")
    assertTrue(found.forall(_ != null))
    assertEquals(before + 1, Dropped.total)
  }
}
