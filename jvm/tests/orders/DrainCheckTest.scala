package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

import org.apache.spark.barograph.planner.{EdgeSketch, OperatorSketch, TopologySketch}

class DrainCheckTest {
  private val sketch = TopologySketch(
    Seq(
      OperatorSketch("read", 2, source = true, sink = false, stateful = false, "", repartition = false),
      OperatorSketch("count", 1, source = false, sink = true, stateful = true, "", repartition = false)),
    Seq(EdgeSketch("read", "count", "hash")))
  private val epoch = Epoch("t", "run", 5L, TopologyOrders.none, 0L, sketch, Nil)
  private val read0 = HowFar("run", 5L, "read", 0, reads = true, waits = true, taken = 0L, sent = 7L)
  private val read1 = read0.copy(index = 1, sent = 3L)
  private val count = HowFar("run", 5L, "count", 0, reads = false, waits = true, taken = 10L, sent = 0L)

  @Test def stillIfEveryInstanceWaitsAndEveryRowWasReceived(): Unit =
    assertTrue(DrainCheck.still(epoch, Set(read0, read1, count)))

  @Test def notStill(): Unit =
    Seq(
      "a row is in flight" -> Set(read0, read1, count.copy(taken = 9L)),
      "an instance works" -> Set(read0, read1, count.copy(waits = false)),
      "a source reads" -> Set(read0, read1.copy(waits = false), count),
      "an instance has not answered" -> Set(read0.copy(sent = 10L), count),
      "an answer is from an earlier epoch" -> Set(read0, read1, count.copy(epoch = 4L)),
      "an answer is from another run" -> Set(read0, read1, count.copy(runId = "old")),
      "an instance is in two places" -> Set(read0, read1, count, read0.copy(sent = 0L)),
      "there is an instance too many" -> Set(read0, read1, count, count.copy(index = 1, taken = 0L)),
      "no executor has answered" -> Set.empty[HowFar]
    ).foreach { case (why, found) => assertFalse(DrainCheck.still(epoch, found), why) }

  @Test def equalCountsOfTwoInstancesAreBothCounted(): Unit =
    assertTrue(DrainCheck.still(epoch, Set(read0.copy(sent = 5L), read1.copy(sent = 5L), count)))

  @Test def flowsIfEverySourceReads(): Unit = {
    val reading = Set(read0.copy(waits = false), read1.copy(waits = false))
    assertTrue(DrainCheck.flow(epoch, reading))
    assertTrue(DrainCheck.flow(epoch, reading + count))
    assertTrue(DrainCheck.flow(epoch, reading + read0.copy(epoch = 4L)), "an earlier epoch does not matter")
    assertFalse(DrainCheck.flow(epoch, reading - read1.copy(waits = false)))
    assertFalse(DrainCheck.flow(epoch, Set(read0.copy(waits = false), read1)))
    assertFalse(DrainCheck.flow(epoch, reading.map(_.copy(runId = "old"))))
  }
}
