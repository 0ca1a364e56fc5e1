package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{AfterEach, Test}

class AvoidedTest {
  private val live = Seq("1", "2", "3").map(id => ExecutorSeats(id, s"host-$id", 4, 0L, 4))

  @AfterEach def clean(): Unit = Avoided.reset()

  private def left(seats: Int, taken: Seq[Seated] = Nil): Seq[String] = Avoided.spare(live, taken, seats).map(_.id)

  @Test def avoidedExecutorsAreLeftOutIfTheOthersHaveSeatsEnough(): Unit = {
    assertEquals(Seq("1", "2", "3"), left(8))
    Avoided.set(Set("2"))
    assertEquals(Seq("1", "3"), left(8))
    assertEquals(Seq("1", "2", "3"), left(9))
    assertEquals(Seq("1", "2", "3"), left(8, Seq(Seated("a", 0, "3", "", ""))))
  }

  @Test def aReportReplacesTheOneBefore(): Unit = {
    Avoided.reported("1", Seq("2"))
    Avoided.reported("3", Seq("2"))
    Avoided.reported("1", Nil)
    assertEquals(Map("3" -> Seq("2")), Avoided.unreachable)
  }
}
