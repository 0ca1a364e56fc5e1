package org.apache.spark.barograph.plugin

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class FreshReportsTest {
  private val put = mutable.Map[String, Promise[Array[Byte]]]()
  private val taken = mutable.Buffer[String]()
  private var questions = 0
  private val heard = mutable.Buffer[Boolean]()

  private def ask(waits: Boolean, executors: String*): Unit = FreshReports.ask(
    executors, waits,
    executor => Some { told =>
      heard += told
      questions += 1
      put.getOrElseUpdate(executor, Promise[Array[Byte]]()).future
    },
    (executor, _) => taken += executor)

  private def answers(executor: String): Unit = {
    put(executor).success(Array.emptyByteArray)
    put -= executor
  }

  @Test def anAnswerIsTakenBeforeTheLookGoesOn(): Unit = {
    FreshReports.ask(
      Seq("fresh-1"), waits = true, _ => Some(_ => Future.successful(Array.emptyByteArray)), (e, _) => taken += e)
    assertEquals(Seq("fresh-1"), taken.toSeq)
  }

  @Test def aSlowExecutorIsWaitedForOnceAndAskedOneQuestionAtATime(): Unit = {
    val began = System.nanoTime()
    (1 to 50).foreach(_ => ask(waits = true, "fresh-2"))
    assertTrue(System.nanoTime() - began < 50 * 100000000L, "it is not waited for each time")
    assertEquals(1, questions)
    answers("fresh-2")
    assertEquals(Seq("fresh-2"), taken.toSeq)
    ask(waits = false, "fresh-2")
    assertEquals(2, questions)
    answers("fresh-2")
  }

  @Test def oneThatCannotBeAskedIsAskedAgainLater(): Unit = {
    val before = Dropped.total
    FreshReports.ask(Seq("fresh-3"), waits = true, _ => None, (e, _) => taken += e)
    FreshReports.ask(
      Seq("fresh-3"), waits = true, _ => Some(_ => throw new IllegalStateException("gone")), (e, _) => taken += e)
    FreshReports.ask(
      Seq("fresh-3"), waits = true, _ => Some(_ => Future.failed(new IllegalStateException("gone"))),
      (e, _) => taken += e)
    assertEquals(Nil, taken.toSeq)
    assertEquals(before + 2, Dropped.total, "and a warning says so")
    ask(waits = false, "fresh-3")
    assertEquals(1, questions)
    answers("fresh-3")
  }

  @Test def anExecutorIsToldWhetherItsLastAnswerWasTaken(): Unit = {
    ask(waits = false, "fresh-6")
    answers("fresh-6")
    ask(waits = false, "fresh-6")
    put.remove("fresh-6").get.failure(new IllegalStateException("too late"))
    ask(waits = false, "fresh-6")
    answers("fresh-6")
    assertEquals(Seq(false, true, false), heard.toSeq)
  }

  @Test def anotherApplicationDoesNotWaitForTheAnswersOfTheLast(): Unit = {
    ask(waits = false, "fresh-5")
    val old = put.remove("fresh-5").get
    FreshReports.reset()
    ask(waits = false, "fresh-5")
    assertEquals(2, questions)
    old.success(Array.emptyByteArray)
    ask(waits = false, "fresh-5")
    assertEquals(2, questions, "a late answer of the last one does not end a question of this one")
    answers("fresh-5")
  }

  @Test def anAnswerThatCannotBeReadIsDropped(): Unit = {
    val before = Dropped.total
    FreshReports.ask(
      Seq("fresh-4"), waits = true, _ => Some(_ => Future.successful(Array.emptyByteArray)),
      (_, answer) => DriverHands.taken(answer))
    assertEquals(before + 1, Dropped.total)
  }
}
