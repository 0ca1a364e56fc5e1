package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class SeatingTest {
  private val a0 = ("a", 0)
  private val a1 = ("a", 1)
  private val b0 = ("b", 0)

  private def executors(seats: (String, Int)*): Seq[ExecutorSeats] =
    seats.map { case (id, n) => ExecutorSeats(id, s"host$id", n, 0L, n) }

  private def seated(
      free: Seq[(String, Int)],
      instances: Seq[(String, Int)] = Seq(a0, a1, b0),
      wishes: Map[(String, Int), String] = Map.empty,
      had: Map[(String, Int), String] = Map.empty,
      warm: Set[String] = Set.empty): Seq[Seated] =
    Seating.seat(instances, wishes, had, Seating.free(executors(free: _*), Nil), warm)

  private def places(of: Seq[Seated]): Seq[String] = of.map(_.executor)

  @Test def instancesSitWhereTheirOrdersSay(): Unit = {
    val found = seated(Seq("1" -> 2, "2" -> 2), wishes = Map(a0 -> "2", a1 -> "1", b0 -> "2"))
    assertEquals(Seq(Seated("a", 0, "2", "2", ""), Seated("a", 1, "1", "1", ""), Seated("b", 0, "2", "2", "")), found)
  }

  @Test def anInstanceWithoutOrdersStaysWhereItWas(): Unit = {
    val found = seated(Seq("1" -> 8, "2" -> 1), Seq(a0), had = Map(a0 -> "2"))
    assertEquals(Seq(Seated("a", 0, "2", "", "the plan does not name it")), found)
  }

  @Test def ordersComeBeforeTheSeatThatAnotherInstanceHad(): Unit =
    assertEquals(Seq("2", "1"), places(seated(Seq("1" -> 1, "2" -> 1), Seq(a0, a1), Map(a1 -> "1"), Map(a0 -> "1"))))

  @Test def aGoneExecutorIsNamedAsTheReason(): Unit = {
    val found = seated(Seq("1" -> 2), Seq(a0), wishes = Map(a0 -> "7"), had = Map(a0 -> "7"))
    assertEquals(Seq(Seated("a", 0, "1", "7", "executor 7 is gone or avoided")), found)
  }

  @Test def aFullExecutorIsNamedAsTheReason(): Unit = {
    val found = seated(Seq("1" -> 1, "2" -> 1), Seq(a0, a1), wishes = Map(a0 -> "1", a1 -> "1"))
    assertEquals(Seq("1", "2"), places(found))
    assertEquals(Seq("", "executor 1 has no free seat"), found.map(_.because))
  }

  @Test def theExecutorWithMostRoomIsTaken(): Unit =
    assertEquals(Seq("2", "2", "1"), places(seated(Seq("1" -> 2, "2" -> 3))).sorted.reverse)

  @Test def aWarmExecutorIsPreferredToOneWithMoreRoom(): Unit =
    assertEquals(Seq("1", "2", "2"), places(seated(Seq("1" -> 1, "2" -> 9), warm = Set("1"))))

  @Test def withTooFewSeatsSomeInstancesHaveNone(): Unit = {
    val found = seated(Seq("1" -> 1, "2" -> 1))
    assertEquals(Seq("1", "2", ""), places(found))
  }

  @Test def withoutExecutorsNoInstanceHasASeat(): Unit = assertEquals(Seq("", "", ""), places(seated(Nil)))

  @Test def noExecutorIsOvercommitted(): Unit =
    for (seats <- 0 to 4; other <- 0 to 4; wish <- Seq("1", "2", "3")) {
      val found = seated(
        Seq("1" -> seats, "2" -> other), wishes = Seq(a0, a1, b0).map(_ -> wish).toMap, had = Map(a0 -> "1", b0 -> "2"))
      assertTrue(found.count(_.executor == "1") <= seats)
      assertTrue(found.count(_.executor == "2") <= other)
      assertEquals(math.max(0, 3 - seats - other), found.count(_.executor.isEmpty))
    }

  @Test def takenSeatsAreNotFree(): Unit = {
    val taken = Seq(Seated("x", 0, "1", "", ""), Seated("x", 1, "1", "", ""), Seated("x", 2, "9", "", ""))
    assertEquals(Seq("1" -> 1, "2" -> 2), Seating.free(executors("1" -> 3, "2" -> 2), taken).toSeq)
  }
}
