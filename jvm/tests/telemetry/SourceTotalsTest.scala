package org.apache.spark.barograph.telemetry

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

/** What the driver's totals say of a source: rows that have arrived, and its backlog. */
@Timeout(60)
class SourceTotalsTest extends TotalsFixture {
  /** Of a topic: rows count as arrived from the first end that was seen; what was there before is backlog. */
  @Test def rowsOfATopicArriveWhenTheyAreProduced(): Unit = {
    plan("run", 0L)
    val reader = new Reader
    def says(read: Long, position: Long, due: Long, ageMs: Long = 0L): Unit = {
      val known = meter(read).copy(loadMs = 7L, start = 100L, position = position, dueRows = due, dueAgeMs = ageMs)
      report(life("run", 0L, "read", 0, if (due < 0L) meter(read) else known))
      reader.look()
    }
    says(read = 0L, position = 40L, due = 100L)
    assertEquals((0L, 60L), (reader.whole("arrived").head, reader.whole("pending").head))
    assertEquals(1L, reader.whole("arrived_known").head)
    says(read = 10L, position = 50L, due = 130L)
    assertEquals((30L, 80L), (reader.whole("arrived").head, reader.whole("pending").head))
    says(read = 15L, position = 55L, due = -1L) // no broker answers
    assertEquals((35L, 0L), (reader.whole("arrived").head, reader.whole("arrived_known").head))
    says(read = 15L, position = 55L, due = 140L)
    assertEquals((40L, 85L), (reader.whole("arrived").head, reader.whole("pending").head))
    assertEquals(0L, reader.whole("age_ms").head)
    says(read = 15L, position = 55L, due = 140L, ageMs = 4000L)
    assertEquals(4000L, reader.whole("age_ms").head, "as old as the figure that the broker gave")
  }

  private def known(read: Long, position: Long, due: Long, load: Long = 7L): MeterReport =
    meter(read).copy(loadMs = load, start = 100L, position = position, dueRows = due)

  /** The backlog, whether it is known, and how old it is. */
  private def lag(reader: Reader): (Long, Boolean, Long) = {
    reader.look()
    (reader.whole("pending").head, reader.whole("arrived_known").head == 1L, reader.whole("age_ms").head)
  }

  @Test def theBacklogStaysKnownUntilTheNextEpochReportsAndGrowsOld(): Unit = {
    val reader = new Reader
    plan("run", 0L)
    report()
    assertEquals((0L, false, 0L), lag(reader), "not known before the first report")
    report(life("run", 0L, "read", 0, known(read = 10L, position = 50L, due = 110L)))
    assertEquals((60L, true, 0L), lag(reader))
    plan("run", 1L)
    assertEquals((60L, true, 0L), lag(reader), "an epoch begins, and its instances do not run yet")
    report(life("run", 0L, "read", 0, known(read = 12L, position = 52L, due = 110L), ended = true))
    assertEquals((58L, true, 0L), lag(reader), "what the epoch before it says at last")
    clockNs += 9 * Second
    report() // the executor is alive, and nothing runs there
    assertEquals((58L, true, 7000L), lag(reader), "two seconds are usual")
    report(life("run", 1L, "read", 0, meter(4L)))
    assertEquals((58L, true, 7000L), lag(reader), "it runs, and no broker has answered it yet")
    assertEquals(10L, reader.whole("arrived").head)
    report(life("run", 1L, "read", 0, known(read = 5L, position = 55L, due = 140L)))
    assertEquals((85L, true, 0L), lag(reader))
    assertEquals(40L, reader.whole("arrived").head)
    plan("run", 2L)
    clockNs += 61 * Second
    report()
    assertEquals((0L, false, 0L), lag(reader), "after a minute nothing is known")
  }

  @Test def whatAFailedEpochHasReadIsBacklogAgain(): Unit = {
    val reader = new Reader
    plan("a", 3L)
    report(life("a", 3L, "read", 0, known(read = 30L, position = 130L, due = 150L)))
    assertEquals((20L, true, 0L), lag(reader))
    plan("b", 3L) // the query was restarted
    assertEquals((50L, true, 0L), lag(reader))
    report(life("a", 3L, "read", 0, known(read = 40L, position = 140L, due = 150L))) // late
    assertEquals((50L, true, 0L), lag(reader))
    plan("b", 4L)
    assertEquals((50L, true, 0L), lag(reader), "it did not run, so it has read nothing")
  }

  @Test def rowsArriveOnceWhicheverInstanceReadsTheirPartition(): Unit = {
    val reader = new Reader
    def arrived: Long = reader.look().whole("arrived").take(6).sum
    /** loads: the partition that each instance reads. due: of each partition, the first of which is 1. */
    def says(epoch: Long, loads: Seq[Long], due: Long => Long, ended: Boolean = false): Unit =
      for ((load, index) <- loads.zipWithIndex)
        report(life("run", epoch, "read", index, known(1L, 100L, due(load), load), ended))
    plan("run", 0L, reads = 4)
    says(0L, Seq(1L, 2L, 3L, 4L), _ * 1000L)
    assertEquals(10000L - 4 * 100L, arrived)
    plan("run", 1L, reads = 6)
    says(1L, Seq(5L, 3L, 6L, 4L, 1L, 2L), load => if (load > 4L) 100L else load * 1000L + 1L)
    assertEquals(10000L - 4 * 100L + 4L, arrived, "one row came to each old partition, and none to the new ones")
    says(0L, Seq(1L, 2L, 3L, 4L), _ * 1000L, ended = true) // late
    says(1L, Seq(5L, 3L, 6L, 4L, 1L, 2L), load => if (load > 4L) 105L else load * 1000L + 2L)
    assertEquals(10000L - 4 * 100L + 8L + 10L, arrived)
    // An operator that reads the same topic twice reads each row twice.
    plan("run", 2L, reads = 2)
    says(2L, Seq(9L, 9L), _ => 200L)
    plan("run", 3L, reads = 2)
    val before = reader.look().whole("arrived").take(2).sum
    says(3L, Seq(9L, 9L), _ => 230L)
    assertEquals(before + 60L, reader.look().whole("arrived").take(2).sum)
  }

  @Test def partitionsThatAreNotReadAnyMoreAreForgotten(): Unit = {
    val counts = new DueCounts(kept = 3)
    val instance = new InstanceTotals(1L, "read", 0)
    def upTo(load: Long, due: Long): Long = {
      counts.epochBegins()
      counts.of(instance, null, load, 0L, present = true).upTo(due)
    }
    for (load <- 1L to 5L) assertEquals(10L, upTo(load, 10L))
    assertEquals(10L, upTo(1L, 10L), "forgotten")
    assertEquals(0L, upTo(5L, 10L))
  }
}
