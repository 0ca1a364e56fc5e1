package org.apache.spark.barograph.orders

import java.util.concurrent.{CompletableFuture, TimeUnit}

import org.junit.jupiter.api.{BeforeEach, Test, Timeout}
import org.junit.jupiter.api.Assertions._

import org.apache.spark.barograph.enforce.{Capacity, Enforced}
import org.apache.spark.barograph.planner.{EdgeSketch, OperatorSketch, TopologySketch}

/** The ledger without Spark: live executors are given. */
@Timeout(60)
class LedgerTest {
  private val live = Seq(ExecutorSeats("1", "h1", 2, 0L, 2), ExecutorSeats("2", "h2", 2, 0L, 2))
  private val sketch = TopologySketch(
    Seq(
      OperatorSketch("read", 1, source = true, sink = false, stateful = false, "", repartition = false),
      OperatorSketch("count", 2, source = false, sink = true, stateful = true, "", repartition = false)),
    Seq(EdgeSketch("read", "count", "hash")))
  private val places = Map(("read", 0) -> "2", ("count", 0) -> "1", ("count", 1) -> "1")

  @BeforeEach def forget(): Unit = Ledger.reset()

  private def plan(
      topology: String, run: String, epoch: Long, on: Seq[ExecutorSeats] = live): Map[String, Seq[String]] = {
    Ledger.begin(topology, run, epoch)
    Ledger.seat(topology, run, epoch, sketch, on)
  }

  private def inBackground[T](work: => T): CompletableFuture[T] = CompletableFuture.supplyAsync(() => work)

  @Test def anEpochIsSeatedByItsOrders(): Unit = {
    Ledger.order(Map("t" -> ((Map("count" -> 2), places))), Set.empty)
    assertEquals(Map("read" -> Seq("h2_2"), "count" -> Seq("h1_1", "h1_1")), plan("t", "run", 0L))
    assertEquals(1, Ledger.freeSeats(live))
    val planned = Ledger.plannedAfter(0L)
    assertEquals(Seq(1L), planned.map(_.epoch.orders.version))
    assertEquals(Set(""), planned.flatMap(_.epoch.seated).map(_.because).toSet)
    assertEquals(planned, Ledger.plannedAfter(0L))
    assertEquals(Nil, Ledger.plannedAfter(planned.last.stamp))
  }

  @Test def ordersDoNotChangeAnEpochThatHasBegun(): Unit = {
    assertEquals(TopologyOrders.none, Ledger.begin("t", "run", 0L))
    Ledger.order(Map("t" -> ((Map("count" -> 3), places))), Set.empty)
    assertEquals(TopologyOrders.none, Ledger.begin("t", "run", 0L))
    assertEquals(TopologyOrders(1L, Map("count" -> 3), places), Ledger.begin("t", "run", 1L))
  }

  @Test def theNextEpochsSeatsAreForeseenAndNothingIsTaken(): Unit = {
    assertEquals(Nil, Ledger.foresee("t", live))
    val three = live :+ ExecutorSeats("3", "h3", 2, 0L, 2)
    Ledger.order(Map("t" -> ((Map.empty[String, Int], places))), Set.empty)
    plan("t", "run", 0L, three)
    assertEquals(Nil, Ledger.foresee("t", three))
    val left = three.tail // executor 1, with two instances of count, is leaving
    val before = Ledger.plannedAfter(0L)
    val moved = Ledger.foresee("t", left)
    assertEquals(Set(("count", 0), ("count", 1)), moved.map(s => (s.operator, s.index)).toSet)
    assertEquals(before, Ledger.plannedAfter(0L))
    val next = plan("t", "run", 1L, left)
    assertEquals(next("count"), moved.sortBy(_.index).map(s => s"h${s.executor}_${s.executor}"))
  }

  @Test def seatsOfAnotherTopologyAreNotFree(): Unit = {
    Ledger.order(Map("other" -> ((Map.empty[String, Int], places))), Set.empty)
    plan("other", "run1", 0L)
    assertEquals(Map("read" -> Seq("h2_2"), "count" -> Seq("", "")), plan("t", "run2", 0L))
    assertEquals(0, Ledger.freeSeats(live))
  }

  @Test def instancesStayWhereTheyWereInTheLastEpoch(): Unit = {
    Ledger.order(Map("t" -> ((Map.empty[String, Int], places))), Set.empty)
    val before = plan("t", "run", 0L)
    Ledger.order(Map("t" -> ((Map.empty[String, Int], Map.empty[(String, Int), String]))), Set.empty)
    assertEquals(before, plan("t", "run", 1L))
  }

  @Test def instancesOfAGoneExecutorSitElsewhere(): Unit = {
    Ledger.order(Map("t" -> ((Map.empty[String, Int], places))), Set.empty)
    plan("t", "run", 0L)
    assertEquals(Map("read" -> Seq("h2_2"), "count" -> Seq("h2_2", "")), plan("t", "run", 1L, live.drop(1)))
    assertEquals(
      Seq("", "executor 1 is gone or avoided", "executor 1 is gone or avoided"),
      Ledger.epochsNow.head.seated.map(_.because))
  }

  @Test def aCutNamesTheEpochThatRuns(): Unit = {
    val before = Ledger.current.version
    assertEquals(Map.empty, Ledger.order(Map.empty, Set("t")))
    assertEquals(before, Ledger.current.version)
    Ledger.begin("t", "run", 4L)
    assertEquals(Map("t" -> 4L), Ledger.order(Map.empty, Set("t", "unknown")))
    assertEquals(Map("t" -> 4L), Ledger.order(Map.empty, Set("t")))
    assertEquals(Map("run" -> 4L), Ledger.current.cuts)
    assertEquals(before + 2, Ledger.current.version)
  }

  @Test def restAndPaceAreNewsOnlyIfTheyChangeSomething(): Unit = {
    val before = Ledger.current.version
    Ledger.rest(Set("t"))
    Ledger.rest(Set("t"))
    Ledger.pace(Map("t" -> 500L))
    Ledger.pace(Map("t" -> 500L))
    assertEquals(Orders(before + 2, Map.empty, Set("t"), Map("t" -> 500L)), Ledger.current)
    Ledger.rest(Set.empty)
    Ledger.pace(Map.empty)
    assertEquals(Orders(before + 4, Map.empty, Set.empty, Map.empty), Ledger.current)
  }

  @Test def executorsAreToldHowManyShareAQuota(): Unit = {
    val both = Seq("1", "2").map(ExecutorSeats(_, "h1", 2, 0L, 2))
    both.foreach(Ledger.executorAdded)
    val capacity = Capacity("/node 7", 500L, 2000L)
    def says(id: String): Unit = Ledger.executorSays(id, capacity, Enforced("cooperative", ""))
    says("1")
    assertEquals(Map.empty, Ledger.current.sharers)
    val before = Ledger.current.version
    says("2")
    assertEquals(Map("1" -> 2, "2" -> 2), Ledger.current.sharers)
    assertEquals(before + 1, Ledger.current.version)
    says("2")
    assertEquals(before + 1, Ledger.current.version, "it is no news")
    Ledger.executorRemoved("2")
    assertEquals(Map.empty, Ledger.current.sharers)
    assertEquals(before + 2, Ledger.current.version)
  }

  @Test def theSeatsAndCutsOfAnEndedRunAreForgottenAndItsOrdersAreKept(): Unit = {
    Ledger.order(Map("t" -> ((Map.empty[String, Int], places))), Set.empty)
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"))
    val before = Ledger.current.version
    Ledger.keepOnly(Set("another"))
    assertEquals(4, Ledger.freeSeats(live))
    assertEquals(Orders(before + 1, Map.empty, Set.empty, Map.empty), Ledger.current)
    assertEquals(places, Ledger.begin("t", "next", 0L).places)
  }

  @Test def aWaitEndsWithTheNextEpoch(): Unit = {
    plan("t", "run", 3L)
    Ledger.order(Map.empty, Set("t"))
    val waiting = inBackground(Ledger.awaitEpochAfter("t", 3L, 50000L))
    plan("t", "run", 4L)
    assertEquals(4L, waiting.get())
  }

  @Test def aWaitEndsWithTheFirstEpochOfTheNextRun(): Unit = {
    plan("t", "run", 3L)
    Ledger.order(Map.empty, Set("t"))
    plan("t", "next", 3L)
    assertEquals(3L, Ledger.awaitEpochAfter("t", 3L, 50000L))
  }

  @Test def aWaitForAnEpochThatDoesNotComeTimesOut(): Unit = {
    plan("t", "run", 3L)
    Ledger.order(Map.empty, Set("t"))
    val began = System.nanoTime()
    assertEquals(-1L, Ledger.awaitEpochAfter("t", 3L, 30L))
    assertTrue(System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(30L))
  }

  @Test def aRunThatIsHeldBeginsItsNextEpochOnlyAfterThatTime(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 40L))
    val began = System.nanoTime()
    Ledger.begin("t", "run", 1L)
    assertTrue(System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(40L))
    assertFalse(Ledger.awaitHeld("t", 1L))
  }

  @Test def aHeldRunIsSeenAsHeld(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    val thread = holding()
    try assertTrue(Ledger.awaitHeld("t", 50000L)) finally end(thread)
  }

  @Test def aRunThatHasEndedIsNotAwaited(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    Ledger.keepOnly(Set.empty)
    assertFalse(Ledger.awaitHeld("t", 50000L))
  }

  @Test def aHoldDoesNotOutliveItsWaiter(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    assertFalse(Ledger.awaitHeld("t", 20L))
    val began = inBackground(Ledger.begin("t", "run", 1L))
    assertEquals(TopologyOrders.none, began.get(10, TimeUnit.SECONDS))
  }

  @Test def aHeldRunThatIsReleasedGoesOn(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    val began = inBackground(Ledger.begin("t", "run", 1L))
    assertTrue(Ledger.awaitHeld("t", 10000L))
    Ledger.release("t")
    assertEquals(TopologyOrders.none, began.get(10, TimeUnit.SECONDS))
  }

  @Test def aHoldThatIsReleasedBeforeItBeganNeverBegins(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    Ledger.release("t")
    Ledger.release("another")
    assertEquals(TopologyOrders.none, inBackground(Ledger.begin("t", "run", 1L)).get(10, TimeUnit.SECONDS))
  }

  @Test def aNewApplicationForgetsRunsThatWereHeld(): Unit = {
    plan("t", "run", 0L)
    Ledger.order(Map.empty, Set("t"), Map("t" -> 50000L))
    val thread = holding()
    try {
      assertTrue(Ledger.awaitHeld("t", 50000L))
      Ledger.reset()
      Ledger.begin("t", "run", 0L)
      Ledger.order(Map.empty, Set("t"))
      assertFalse(Ledger.awaitHeld("t", 1L))
    } finally end(thread)
  }

  private def holding(): Thread = {
    val thread = new Thread(() =>
      try { Ledger.begin("t", "run", 1L); () } catch { case _: InterruptedException => })
    thread.setDaemon(true)
    thread.start()
    thread
  }

  private def end(thread: Thread): Unit = { thread.interrupt(); thread.join() }
}
