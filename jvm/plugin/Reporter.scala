package org.apache.spark.barograph.plugin

import java.util.concurrent.{Executors, TimeUnit}

import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.Cuts
import org.apache.spark.barograph.telemetry.{LifeReport, Lives, ProcessUse}
import org.apache.spark.internal.Logging

/**
 * Sends an executor's reports to the driver and takes the orders that are the answer: five times a second while an
 * instance runs here, and once a second otherwise, as a heartbeat, which also delivers orders that were lost.
 *
 * It goes on after every failure, also after an error of the JVM such as a class that cannot be loaded: without reports
 * the driver would take a busy executor for a silent one.
 */
final class Reporter(
    executor: String,
    ask: Array[Byte] => AnyRef,
    process: () => ProcessUse,
    lives: () => Seq[LifeReport] = () => Lives.report(),
    heard: () => Unit = () => Lives.heard(),
    everyMs: Long = 200L,
    unreachable: () => Seq[String] = () => Nil) extends Logging {
  private val clock = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "barograph-report")
    thread.setDaemon(true)
    thread
  }
  private var silent = 0

  def start(): Unit = clock.scheduleWithFixedDelay(() => safely(), everyMs, everyMs, TimeUnit.MILLISECONDS)

  def close(): Unit = clock.shutdownNow()

  private def safely(): Unit =
    try report()
    catch {
      // A task that throws is not called again. Logging may fail for the same reason as the report.
      case e: Throwable =>
        try logWarning("a report did not reach the driver", e) catch { case _: Throwable => () }
    }

  private def report(): Unit = {
    val found = lives()
    silent += 1
    if (found.nonEmpty || silent >= 5) {
      silent = 0
      Reporter.follow(ask(Messages.report(Report(executor, Cuts.version, found, process(), unreachable()))))
      heard()
    }
  }
}

object Reporter {
  /** The driver's answer: its present orders, or null if this executor has them. */
  def follow(answer: AnyRef): Unit = answer match {
    case orders: Array[Byte] => ExecutorMail.take(orders)
    case _ =>
  }
}
