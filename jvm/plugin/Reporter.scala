package org.apache.spark.barograph.plugin

import java.util.concurrent.{Executors, TimeUnit}

import org.apache.spark.barograph.enforce.{Capacity, Enforced}
import org.apache.spark.barograph.kafka.TopicSize
import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.Cuts
import org.apache.spark.barograph.telemetry.{LifeReport, Lives, ProcessUse, ReportedLives}
import org.apache.spark.internal.Logging

/**
 * Sends an executor's reports to the driver and takes the orders that are the answer. Each report costs the driver CPU,
 * so it sends one within a fifth of a second after an instance has begun or ended, and otherwise only if it has given
 * none for a second, as a heartbeat, which also delivers orders that were lost. When the driver is looked at, it asks
 * for a report: see [[FreshReports]].
 *
 * It goes on after every failure, also after an error of the JVM such as a class that cannot be loaded: without reports
 * the driver would take a busy executor for a silent one.
 */
final class Reporter(
    executor: String,
    ask: Array[Byte] => AnyRef,
    process: () => ProcessUse,
    lives: ReportedLives = Lives,
    everyMs: Long = 200L,
    silentMs: Long = 1000L,
    unreachable: () => Seq[String] = () => Nil,
    capacity: () => Capacity = () => Capacity.unknown,
    enforced: () => Enforced = () => Enforced("", ""),
    topics: () => Seq[TopicSize] = () => Nil) extends Logging {
  private val clock = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "barograph-report")
    thread.setDaemon(true)
    thread
  }
  private var givenNs = System.nanoTime() - silentMs * 1000000L
  private var isUnderWay = false

  def start(): Unit = clock.scheduleWithFixedDelay(() => safely(), everyMs, everyMs, TimeUnit.MILLISECONDS)

  def close(): Unit = clock.shutdownNow()

  /** The report that the driver asks for. It has no lives while another is under way: none overtakes another. */
  def answer(heard: Boolean): Array[Byte] = synchronized {
    if (isUnderWay) written(Nil)
    else {
      val found = written(lives.answer(heard))
      givenNs = System.nanoTime()
      found
    }
  }

  private def safely(): Unit =
    try if (isDue) report()
    catch {
      // A task that throws is not called again. Logging may fail for the same reason as the report.
      case e: Throwable =>
        try logWarning("a report did not reach the driver", e) catch { case _: Throwable => () }
    }

  private def isDue: Boolean =
    lives.hasNews || synchronized(System.nanoTime() - givenNs >= silentMs * 1000000L)

  private def report(): Unit = {
    // Not locked while the driver answers: it may ask for a report at the same time.
    val message = synchronized { isUnderWay = true; written(lives.report()) }
    try {
      Reporter.follow(ask(message))
      lives.heard()
      synchronized { givenNs = System.nanoTime() }
    } finally synchronized { isUnderWay = false }
  }

  private def written(found: Seq[LifeReport]): Array[Byte] =
    Messages.report(Report(executor, Cuts.version, found, process(), unreachable(), capacity(), enforced(), topics()))
}

object Reporter {
  /** The driver's answer: its present orders, or null if this executor has them. */
  def follow(answer: AnyRef): Unit = answer match {
    case orders: Array[Byte] => ExecutorMail.take(orders)
    case _ =>
  }
}
