package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

import org.apache.spark.barograph.planner.TopologySketch

class PlannedEpochsTest {
  private val planned = new PlannedEpochs

  private def add(numbers: Range, instances: Int): Unit = numbers.foreach { n =>
    val seated = (0 until instances).map(Seated("count", _, "1", "", ""))
    planned.add(Planned(n, Epoch("t", "run", n, TopologyOrders.none, 0L, TopologySketch(Nil, Nil), seated)))
  }

  @Test def aReaderGetsWhatCameAfterItsLastOne(): Unit = {
    add(1 to 5, 2)
    assertEquals(Seq(4L, 5L), planned.after(3L).map(_.stamp))
    assertEquals(Nil, planned.after(5L))
  }

  @Test def oldEpochsAreForgottenByTheirSeats(): Unit = {
    add(1 to 100, 1000)
    assertEquals((51L to 100L).toSeq, planned.after(0L).map(_.stamp))
    add(101 to 101, 10)
    assertEquals(52L, planned.after(0L).head.stamp)
  }

  @Test def someAreKeptHoweverLargeTheyAre(): Unit = {
    add(1 to 30, 20000)
    assertEquals(20, planned.after(0L).size)
  }

  @Test def whatIsForgottenFreesItsSeats(): Unit = {
    add(1 to 50, 1000)
    planned.clear()
    assertEquals(Nil, planned.after(0L))
    add(1 to 50, 1000)
    assertEquals(50, planned.after(0L).size)
  }
}
