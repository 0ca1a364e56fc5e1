package org.apache.spark.barograph.plugin

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.concurrent.duration._
import scala.util.{Success, Try}

import org.apache.spark.barograph.messages.Messages
import org.apache.spark.barograph.telemetry.Totals

/**
 * Asks executors for reports when the driver is looked at: figures are fresh then, and executors need not report all
 * the time. An executor is asked only if its last report is old, and has one question at a time.
 */
object FreshReports {
  private val OldMs = 100L // half of what an executor takes to report that an instance has begun
  private val Wait = 100.millis // a slow executor is not waited for any longer; its answer counts when it comes
  private val AnswerMs = 60000L
  private val asked = new ConcurrentHashMap[String, (Deadline, Future[Unit])]()
  private val heard = ConcurrentHashMap.newKeySet[String]() // executors whose last answer was taken

  /** A new application in the same process may have executors of the same names. */
  def reset(): Unit = {
    asked.clear()
    heard.clear()
  }

  /** waits: until the answers have been taken in, or the time is over. */
  def ask(executors: Seq[String], waits: Boolean): Unit =
    ask(
      Totals.ages(executors).collect { case (executor, ms) if ms >= OldMs => executor }.toSeq, waits,
      executor => Mailboxes.get(executor).map(box => heard => box.ask(Messages.askReport(heard), AnswerMs)),
      (executor, answer) => for (orders <- DriverHands.taken(answer); box <- Mailboxes.get(executor)) box.send(orders))

  /**
   * question: asks an executor, and tells it whether its last answer was taken; None if it cannot be asked. take: takes
   * its answer.
   */
  private[plugin] def ask(
      executors: Seq[String], waits: Boolean, question: String => Option[Boolean => Future[Array[Byte]]],
      take: (String, Array[Byte]) => Unit): Unit = {
    val answers = for (executor <- executors; put <- question(executor)) yield {
      val done = Promise[Unit]()
      val mine = (Wait.fromNow, done.future)
      Option(asked.putIfAbsent(executor, mine)).getOrElse {
        // In the thread that receives it: a report that the executor sends afterwards must not overtake it.
        Try(put(heard.remove(executor))).fold(Future.failed, identity).onComplete { answer =>
          val taken = Dropped.unless(s"the report of executor $executor")(take(executor, answer.get))
          if (taken.isDefined && (asked.get(executor) eq mine)) heard.add(executor) // not after a reset
          asked.remove(executor, mine)
          done.complete(Success(()))
        }(ExecutionContext.parasitic)
        mine
      }
    }
    // That the time is over is no error: the answer is taken in when it comes.
    if (waits) for ((end, answer) <- answers if end.hasTimeLeft()) Try(Await.ready(answer, end.timeLeft))
  }
}
