package org.apache.spark.barograph.telemetry

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

import org.apache.spark.barograph.orders.Ledger

/** The driver's running totals, and what readers get of them: executors' reports and live executors are given. */
@Timeout(60)
class TotalsTest extends TotalsFixture {
  @Test def readingTakesNothing(): Unit = {
    plan("run", 0L)
    report(life("run", 0L, "read", 0, meter(10L, Seq(4L, 6L)), output = Seq(100L, 3L)))
    val first, second = new Reader
    val seen = first.look().found
    val moving = Set("cursor", "age_ms") // the clock goes on
    assertEquals(seen -- moving, second.look().found -- moving)
    assertEquals(Seq(10L, 0L, 0L), first.whole("executed"))
    assertEquals(Seq(4L, 6L), first.whole("traffic"))
    assertEquals(Seq(0L, 4L, 6L), first.whole("pending"))
    assertEquals(Seq(3L), first.whole("output_rows"))
    // Totals come again; what has not changed since does not.
    first.look()
    assertEquals(Seq(10L, 0L, 0L), first.whole("executed"))
    for (name <- Seq("layout_topology", "epoch_number", "life_epoch", "output_rows")) assertFalse(first.has(name), name)
  }

  @Test def aReaderThatLooksSeldomMissesNothing(): Unit = {
    val often, seldom = new Reader
    var (output, lives) = (0L, 0)
    for (epoch <- 0L until 3L) {
      plan("run", epoch)
      for (turn <- 1L to 3L) {
        report(life("run", epoch, "read", 0, meter(turn), ended = turn == 3L, output = Seq(epoch * 10 + turn, turn)))
        often.look()
        output += often.whole("output_rows").sum
        lives += often.whole("life_epoch").size
      }
    }
    seldom.look()
    assertEquals(output, seldom.whole("output_rows").sum)
    assertEquals(Seq(0L, 1L, 2L), seldom.whole("epoch_number"))
    assertEquals(Seq(0L, 1L, 2L), seldom.whole("life_epoch"))
    assertTrue(seldom.whole("life_ended_ms").forall(_ > 0))
    assertEquals(9L, seldom.whole("executed").head)
    assertEquals(6, lives) // each began and ended
  }

  @Test def totalsRiseOverEpochsRestartsAndRuns(): Unit = {
    val reader = new Reader
    var before = 0L
    for ((run, epoch) <- Seq("a" -> 0L, "a" -> 1L, "b" -> 1L, "c" -> 1L)) {
      plan(run, epoch)
      for (executed <- Seq(5L, 5L, 3L, 8L)) { // one comes twice, and one late
        report(life(run, epoch, "count", 0, meter(executed, busyNs = executed)))
        val now = reader.look().whole("executed")(1)
        assertTrue(now >= before)
        before = now
      }
    }
    assertEquals(32L, before)
    assertEquals(32L, reader.whole("busy_ns")(1))
  }

  @Test def aLifeThatEndedAddsNothingMore(): Unit = {
    plan("run", 0L)
    val last = life("run", 0L, "count", 0, meter(7L), ended = true, output = Seq(100L, 7L))
    report(last)
    report(last)
    val reader = new Reader().look()
    assertEquals(7L, reader.whole("executed")(1))
    assertEquals(Seq(7L), reader.whole("output_rows"))
  }

  @Test def anExecutorWithTheNumberOfOneThatHasEndedIsNotSilent(): Unit = {
    plan("run", 0L)
    report(life("run", 0L, "count", 0, meter(7L)))
    Totals.executorRemoved("1")
    assertTrue(Totals.ages(Seq("1")).contains("1"), "figures of one that has ended have an age")
    Totals.executorAdded("1")
    assertEquals(Map.empty, Totals.ages(Seq("1")))
  }

  @Test def outputThatIsReportedTwiceCountsOnce(): Unit = {
    plan("run", 0L)
    val first = life("run", 0L, "count", 0, meter(7L), output = Seq(100L, 3L, 101L, 4L))
    report(first)
    report(first) // its acknowledgement was lost
    report(
      life("run", 0L, "count", 0, meter(12L), output = Seq(101L, 4L, 102L, 5L), outputBefore = 1L),
      life("run", 0L, "count", 0, meter(18L), output = Seq(104L, 6L), outputBefore = 4L)) // one was lost for good
    val reader = new Reader().look()
    assertEquals(Seq(100L, 101L, 102L, 104L), reader.whole("output_centisecond"))
    assertEquals(Seq(3L, 4L, 5L, 6L), reader.whole("output_rows"))
  }

  @Test def aRemovedInstanceThatComesBackIsAnother(): Unit = {
    plan("run", 0L, counts = 2)
    report(
      life("run", 0L, "count", 1, meter(100L), ended = true), life("run", 0L, "read", 0, meter(9L, Seq(4L, 5L))))
    val reader = new Reader().look()
    val ids = reader.whole("instance_id")
    plan("run", 1L, counts = 1)
    report(life("run", 0L, "read", 0, meter(9L, Seq(4L, 9L)), ended = true)) // late, and to an instance that is gone
    reader.look()
    assertEquals(ids.take(2), reader.whole("instance_id"))
    assertEquals(Seq(4L), reader.whole("traffic"))
    plan("run", 2L, counts = 2)
    reader.look()
    assertEquals(ids.take(2), reader.whole("instance_id").take(2))
    assertFalse(ids.contains(reader.whole("instance_id").last))
    assertEquals(Seq(9L, 0L, 0L), reader.whole("executed"))
    assertEquals(Seq(4L, 0L), reader.whole("traffic"))
  }

  @Test def latenciesAreSumsAndOnlyChangedBucketsAreSent(): Unit = {
    plan("run", 0L)
    val reader = new Reader
    report(life("run", 0L, "count", 0, meter(1L, due = Seq(30L, 20L, 10L, 1L, 20L, 1L))))
    reader.look()
    assertEquals(Seq(10L, 20L) -> Seq(1L, 1L), reader.whole("bucket") -> reader.whole("bucket_rows"))
    report(
      life("run", 0L, "count", 0, meter(2L)), // without latencies this time
      life("run", 0L, "count", 1, meter(1L, due = Seq(50L, 30L, 20L, 1L, 30L, 1L))))
    reader.look()
    assertEquals(Seq(20L, 30L) -> Seq(2L, 1L), reader.whole("bucket") -> reader.whole("bucket_rows"))
    assertEquals(Seq(80L), reader.whole("latency_sum_ms"))
    assertEquals(Seq(30L), reader.whole("latency_epoch_max_ms"))
    reader.look()
    assertFalse(reader.has("bucket"))
  }

  @Test def latenciesByRecordTimesHaveAClockOfTheirOwn(): Unit = {
    plan("run", 0L)
    val reader = new Reader
    val times = Array(10L, 10L, 10L, 1L)
    report(life("run", 0L, "count", 0, meter(1L, due = Seq(8L, 8L, 8L, 1L)).copy(record = times)))
    reader.look()
    assertEquals(Seq(0L, 2L) -> Seq(8L, 10L), reader.whole("bucket_clock") -> reader.whole("bucket"))
    assertEquals(Seq(0L, 2L) -> Seq(8L, 10L), reader.whole("latency_clock") -> reader.whole("latency_sum_ms"))
    report(life("run", 0L, "count", 0, meter(2L))) // without latencies this time
    report(life("run", 0L, "count", 0, meter(3L).copy(record = Array(30L, 20L, 10L, 1L, 20L, 1L))))
    reader.look()
    assertEquals(Seq(2L) -> Seq(20L), reader.whole("bucket_clock") -> reader.whole("bucket"))
    assertEquals(Seq(8L, 30L), reader.whole("latency_sum_ms"))
  }

  @Test def aRunThatEndedRunsNoMoreAndIsForgottenByItself(): Unit = {
    plan("run", 0L)
    report(life("run", 0L, "count", 0, meter(1L)))
    val reader = new Reader
    assertEquals(Seq(1L), reader.look().whole("present"))
    assertEquals(Seq(0L), reader.look(_ => false).whole("present")) // Spark has no such query now
    assertEquals(Seq(1L), reader.look().whole("present"))
    Ledger.forget("run") // as the listener does when the query ends
    assertEquals(Seq(0L), reader.look().whole("present"))
    assertEquals(Seq(1L), reader.whole("executed").slice(1, 2))
    clockNs += 601 * Second
    report()
    assertEquals((0, 0), { val (lives, topologies, _) = Totals.kept; (lives, topologies) })
    assertEquals(Nil, reader.look().whole("topology"))
  }

  @Test def aLifeThatNeverEndedSaysWhatItReadWhenAnotherEpochBegins(): Unit = {
    plan("a", 0L)
    report(life("a", 0L, "read", 0, meter(1L)))
    val reader = new Reader().look()
    report(life("a", 0L, "read", 0, meter(40L)))
    plan("b", 0L)
    reader.look()
    assertEquals(Seq(40L), reader.whole("life_read"))
    assertEquals(Seq(0L), reader.whole("life_ended_ms"))
    assertEquals(0L, reader.whole("read").head)
  }

  @Test def figuresHaveTheAgeOfTheLastReportOfTheirExecutor(): Unit = {
    plan("run", 0L)
    report(life("run", 0L, "read", 0, meter(1L)), life("run", 0L, "count", 0, meter(1L)))
    clockNs += 5 * Second
    Totals.take("2", Nil, ProcessUse(1L, 1L), clockNs)
    clockNs += Second
    val reader = new Reader().look()
    assertEquals(Seq(6000L, 1000L), reader.whole("executor_age_ms"))
    assertEquals(Seq(6000L, 6000L), reader.whole("age_ms").take(2))
  }

  /** Its wall clock may be set meanwhile: only the monotonic one counts. */
  @Test def figuresOfAnExecutorThatNeverReportedAreAsOldAsTheirEpoch(): Unit = {
    plan("run", 0L)
    val reader = new Reader().look()
    assertEquals(Seq(0L, 0L, 0L), reader.whole("age_ms"))
    clockNs += 3600 * Second
    assertEquals(Seq(3600000L, 3600000L, 3600000L), reader.look().whole("age_ms"))
    plan("run", 1L)
    assertEquals(Seq(0L, 0L, 0L), reader.look().whole("age_ms"))
    clockNs += 2 * Second
    assertEquals(Seq(2000L, 2000L, 2000L), reader.look().whole("age_ms"))
  }

  @Test def memoryIsBounded(): Unit = {
    for (epoch <- 0L until 3000L) {
      plan("run", epoch)
      report((0 until 2).map(i => life("run", epoch, "count", i, meter(1L), ended = true)): _*)
      clockNs += Second
    }
    val (lives, topologies, changes) = Totals.kept
    assertTrue(lives <= 4 && topologies == 1 && changes <= LifeLog.Kept, s"$lives $topologies $changes")
    assertTrue(Ledger.plannedAfter(0L).map(_.epoch.seated.size).sum <= 50000)
    val log = new LifeLog(kept = 10)
    for (epoch <- 1L to 100L) log.add(epoch, life("run", epoch, "count", 0, meter(1L)))
    assertEquals((91L to 100L).toSeq, log.after(0L).map(_.epoch))
  }
}
