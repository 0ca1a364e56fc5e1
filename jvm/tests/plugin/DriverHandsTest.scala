package org.apache.spark.barograph.plugin

import org.apache.spark.SparkConf
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.kafka.{GrownTopic, Topic, TopicSize, Topics}
import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger}
import org.apache.spark.barograph.telemetry.ProcessUse
import org.apache.spark.scheduler.SparkListenerExecutorAdded
import org.apache.spark.scheduler.cluster.ExecutorInfo
import org.junit.jupiter.api.{BeforeEach, Test}
import org.junit.jupiter.api.Assertions._

class DriverHandsTest {
  private val driver = new DriverHands

  @BeforeEach def forget(): Unit = {
    Ledger.reset()
    Mailboxes.reset()
    Topics.reset()
  }

  private val fourCores = SparkListenerExecutorAdded(1L, "1", new ExecutorInfo("h", 4, Map.empty, Map.empty))

  @Test def anExecutorHasAsManySeatsAsItRunsTasks(): Unit =
    for ((cpus, seats) <- Seq("1" -> 4, "0.5" -> 8, "0.1" -> 40, "2" -> 2, "3" -> 1)) {
      val conf = new SparkConf(false).set("spark.task.cpus", cpus)
      val found = DriverHands.seatsOf(fourCores, SparkInternals.tasksAtOnce(conf, _))
      assertEquals(ExecutorSeats("1", "h", seats, 1L, cores = 4), found, s"spark.task.cpus=$cpus")
    }

  @Test def theSizesOfTopicsAreTaken(): Unit = {
    val topic = Topic("a:9092", "lines")
    Topics.planned("t", "run", Map(topic -> 4))
    DriverHands.taken(Messages.report(
      Report("1", 0L, Nil, ProcessUse(1L, 2L), topics = Seq(TopicSize(topic, 6)))))
    assertEquals(Seq(GrownTopic("t", "run", "lines", 4, 6)), Topics.grown(_ => true))
  }

  private def report(heard: Long): Array[Byte] = Messages.report(Report("1", heard, Nil, ProcessUse(1L, 2L)))

  @Test def anExecutorThatIsBehindGetsTheOrders(): Unit = {
    Ledger.rest(Set("quiet"))
    driver.receive(report(Ledger.current.version - 1)) match {
      case orders: Array[Byte] => assertEquals(Ledger.current, Messages.ordersIn(orders))
      case other => fail(s"the answer is $other")
    }
  }

  @Test def anExecutorThatHasTheOrdersGetsNothing(): Unit = assertNull(driver.receive(report(Ledger.current.version)))

  @Test def executorsThatEndBeforeTheyGreetAreRemembered(): Unit = {
    Stillborn.reset()
    Stillborn.removed(greeted = true, "lost")
    assertEquals("", Stillborn.why)
    Stillborn.removed(greeted = false, "Unable to create executor")
    Stillborn.removed(greeted = true, "lost")
    assertEquals("Unable to create executor", Stillborn.why)
    Stillborn.greeted()
    assertEquals("", Stillborn.why)
  }

  @Test def whatCannotBeReadIsDropped(): Unit = {
    val broken = Seq[AnyRef](
      "text", Array.emptyByteArray, report(0L).dropRight(1), report(0L).updated(0, 99.toByte), Messages.hello("1"),
      Array[AnyRef](), Array[AnyRef](Messages.hello("1"), "no mailbox"))
    for (message <- broken) {
      val before = Dropped.total
      assertNull(driver.receive(message))
      assertEquals(before + 1, Dropped.total)
    }
    assertEquals(Map.empty, Mailboxes.all)
  }
}
