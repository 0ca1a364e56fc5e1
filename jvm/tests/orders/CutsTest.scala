package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** Orders as an executor takes them. Versions only grow, and all tests share one executor. */
class CutsTest {
  private def take(
      cuts: Map[String, Long], resting: Set[String] = Set.empty, lengths: Map[String, Long] = Map.empty): Orders = {
    val orders = Orders(Cuts.version + 1, cuts, resting, lengths)
    Cuts.take(orders)
    orders
  }

  @Test def aRunThatIsNotCutHasNoEndedEpoch(): Unit = assertEquals(-1L, Cuts.of("new").epoch)

  @Test def aCutReachesAReaderThatAlreadyLooks(): Unit = {
    val line = Cuts.of("reads")
    take(Map("reads" -> 3L))
    assertEquals(3L, line.epoch)
  }

  @Test def aCutOnlyGrows(): Unit = {
    val line = Cuts.of("grows")
    take(Map("grows" -> 3L))
    take(Map("grows" -> 2L))
    assertEquals(3L, line.epoch)
  }

  @Test def olderOrdersAreIgnored(): Unit = {
    val line = Cuts.of("late")
    val old = take(Map("late" -> 1L))
    Cuts.take(Orders(old.version, Map("late" -> 9L), Set("late"), Map.empty))
    assertEquals(1L, line.epoch)
    assertFalse(Gates.of("late").shut)
  }

  @Test def aCutRunThatNoOrderNamesIsForgotten(): Unit = {
    take(Map("ends" -> 3L))
    take(Map.empty)
    assertEquals(-1L, Cuts.of("ends").epoch)
  }

  @Test def ordersSayWhichSourcesRestAndHowLongEpochsAre(): Unit = {
    take(Map.empty, Set("rests"), Map("paced" -> 500L))
    assertTrue(Gates.of("rests").shut)
    assertEquals(500L, Gates.of("paced").lengthMs)
    take(Map.empty)
    assertFalse(Gates.of("rests").shut)
    assertEquals(0L, Gates.of("paced").lengthMs)
  }
}
