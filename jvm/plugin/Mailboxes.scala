package org.apache.spark.barograph.plugin

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{Await, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.apache.spark.barograph.internals.Mailbox
import org.apache.spark.barograph.messages.Messages
import org.apache.spark.barograph.orders.Orders
import org.apache.spark.internal.Logging

/** The executors to which orders are pushed. */
object Mailboxes extends Logging {
  private val boxes = new ConcurrentHashMap[String, Mailbox]()
  def reset(): Unit = boxes.clear()
  def remember(executor: String, box: Mailbox): Unit = boxes.put(executor, box)
  def forget(executor: String): Unit = boxes.remove(executor)
  def all: Map[String, Mailbox] = boxes.asScala.toMap
  def get(executor: String): Option[Mailbox] = Option(boxes.get(executor))

  /** One message to each executor; none waits for another. A lost message is made up for by the next report. */
  def push(orders: Orders): Unit = {
    val message = Messages.orders(orders)
    boxes.asScala.foreach { case (executor, box) =>
      try box.send(message) catch { case e: Exception => logWarning(s"orders did not reach executor $executor", e) }
    }
  }

  /** Asks these executors at once, with one timeout, and returns the answers that came, by executor. */
  def ask(executors: Map[String, Mailbox], question: Array[Byte], timeoutMs: Long): Map[String, Array[Byte]] =
    answers(executors.map { case (executor, box) => executor -> (() => box.ask(question, timeoutMs)) }, timeoutMs)

  private[plugin] def answers(
      questions: Map[String, () => Future[Array[Byte]]], timeoutMs: Long): Map[String, Array[Byte]] = {
    val end = System.nanoTime() + timeoutMs * 1000000L
    def leftMs = math.max(1L, (end - System.nanoTime()) / 1000000L)
    val asked = questions.map { case (executor, put) => executor -> answered(executor)(put()) }
    asked.flatMap { case (executor, question) =>
      question.flatMap(answer => answered(executor)(Await.result(answer, leftMs.millis))).map(executor -> _)
    }
  }

  /** An executor that ends has answers outstanding, and one that hangs gives none: few of these warnings are logged. */
  private def answered[T](executor: String)(work: => T): Option[T] =
    Dropped.unless(s"the answer of executor $executor")(work)
}
