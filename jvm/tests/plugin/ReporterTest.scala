package org.apache.spark.barograph.plugin

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.{Cuts, Orders}
import org.apache.spark.barograph.telemetry.{LifeReport, MeterReport, ProcessUse, ReportedLives}
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class ReporterTest {
  private val asked = new LinkedBlockingQueue[Report]()

  /** An executor without instances. */
  private class Quiet extends ReportedLives {
    def hasNews: Boolean = false
    def report(): Seq[LifeReport] = Nil
    def heard(): Unit = ()
    def answer(heard: Boolean): Seq[LifeReport] = Nil
  }

  private val none = Array.emptyLongArray

  private def life(index: Int): LifeReport = LifeReport(
    "t", "run", 0L, "split", index, "executor-1", 1, 1, 1L, 0L, 0L, 0L, none,
    MeterReport(0L, 0L, 0L, 0L, 0L, 0L, none, none, none, -1L, -1L, -1L, -1L))

  private def indices(message: Array[Byte]): Seq[Int] = Messages.reportIn(message).lives.map(_.index)

  /** Reports with answers from `answer`, until `enough` were asked for. */
  private def run(enough: Int)(answer: Int => AnyRef): Seq[Report] = {
    var calls = 0
    val reporter = new Reporter("executor-1", message => {
      calls += 1
      asked.add(Messages.reportIn(message))
      answer(calls)
    }, () => ProcessUse(1L, 2L), new Quiet, everyMs = 1L, silentMs = 2L)
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

  @Test def newsAreReportedSoonAndTheRestOnlyAfterSilence(): Unit = {
    @volatile var news = false
    val lives = new Quiet {
      override def hasNews: Boolean = news
      override def report(): Seq[LifeReport] = { news = false; Seq(life(7)) }
    }
    val reporter = new Reporter("executor-1", m => { asked.add(Messages.reportIn(m)); null },
      () => ProcessUse(1L, 2L), lives, everyMs = 1L, silentMs = 3600000L)
    reporter.start()
    try {
      assertNotNull(asked.poll(30, TimeUnit.SECONDS)) // it has never reported before
      assertNull(asked.poll(100, TimeUnit.MILLISECONDS))
      news = true
      assertEquals(Seq(7), asked.poll(30, TimeUnit.SECONDS).lives.map(_.index))
      assertNull(asked.poll(100, TimeUnit.MILLISECONDS))
    } finally reporter.close()
  }

  @Test def aReportThatIsAskedForBreaksTheSilence(): Unit = {
    val lives = new Quiet { override def answer(heard: Boolean): Seq[LifeReport] = Seq(life(3)) }
    val reporter = new Reporter("executor-1", m => { asked.add(Messages.reportIn(m)); null },
      () => ProcessUse(1L, 2L), lives, everyMs = 1L, silentMs = 3600000L)
    assertEquals(Seq(3), indices(reporter.answer(heard = true)))
    reporter.start()
    try assertNull(asked.poll(100, TimeUnit.MILLISECONDS)) finally reporter.close()
  }

  @Test def noneOvertakesAReportThatIsUnderWay(): Unit = {
    val lives = new Quiet {
      override def answer(heard: Boolean): Seq[LifeReport] = Seq(life(3))
      override def report(): Seq[LifeReport] = Seq(life(4))
    }
    val meanwhile = new LinkedBlockingQueue[Seq[Int]]()
    lazy val reporter: Reporter = new Reporter(
      "executor-1", _ => { meanwhile.add(indices(reporter.answer(heard = true))); null }, () => ProcessUse(1L, 2L),
      lives, everyMs = 1L, silentMs = 2L)
    reporter.start()
    try assertEquals(Nil, meanwhile.poll(30, TimeUnit.SECONDS)) finally reporter.close()
  }
}
