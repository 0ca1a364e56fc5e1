package org.apache.spark.barograph.plugin

import java.util.concurrent.atomic.AtomicLong

import scala.util.control.NonFatal

import org.apache.spark.barograph.messages.{Malformed, Messages, Wire}
import org.apache.spark.barograph.orders.Cuts
import org.apache.spark.barograph.telemetry.Lives
import org.apache.spark.internal.Logging

/** What an executor does with messages of the driver. A message that cannot be read is logged and dropped. */
object ExecutorMail {
  /** The answer to a question that cannot be read. */
  val NoAnswer: Array[Byte] = Array.emptyByteArray

  def take(message: Array[Byte]): Unit = Dropped.unless("orders from the driver")(Cuts.take(Messages.ordersIn(message)))

  /** report: makes the report of this executor, told whether the driver has taken the last one it asked for. */
  def answer(message: Array[Byte], report: Boolean => Array[Byte] = ExecutorHands.report): Array[Byte] =
    Dropped.unless("a question of the driver") {
      Wire.kindOf(message) match {
        case Wire.AreYouThere => Messages.here
        case Wire.AskReport => report(Messages.askReportIn(message))
        case Wire.AskHowFar => Messages.howFar(Lives.howFar(Messages.askHowFarIn(message)))
        case kind => throw new Malformed(s"there is no question of kind $kind")
      }
    }.getOrElse(NoAnswer)
}

/** Messages that could not be used. At most one a minute is logged: reports come often. */
object Dropped extends Logging {
  private val QuietNs = 60000000000L
  private val loggedNs = new AtomicLong(System.nanoTime() - QuietNs)
  private val count = new AtomicLong

  def total: Long = count.get()

  /** None if the work fails. */
  def unless[T](what: String)(work: => T): Option[T] =
    try Some(work)
    catch {
      case NonFatal(e) =>
        val n = count.incrementAndGet()
        val last = loggedNs.get()
        val now = System.nanoTime()
        if (now - last >= QuietNs && loggedNs.compareAndSet(last, now)) {
          logWarning(s"$what could not be used and was dropped (the ${n}th such message)", e)
        }
        None
    }
}
