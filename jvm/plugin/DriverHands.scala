package org.apache.spark.barograph.plugin

import java.util.{Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger}
import org.apache.spark.barograph.telemetry.{Gauges, LifeReport, ProcessUse, ReportBuffer}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.scheduler._

/** An executor announces itself and where orders can be sent. The answer is the present state of the orders. */
final case class Hello(executor: String, mailbox: RpcEndpointRef)

/**
 * What an executor saw since its last report, and the latest orders it has. The answer is [[Orders]] if it is behind.
 */
final case class Report(executor: String, heard: Long, lives: Seq[LifeReport], process: ProcessUse)

class DriverHands extends DriverPlugin with Logging {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Ledger.reset()
    ReportBuffer.reset()
    Gauges.reset()
    Mailboxes.reset()
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(e: SparkListenerExecutorAdded): Unit =
        Ledger.executorAdded(
          ExecutorSeats(e.executorId, e.executorInfo.executorHost, e.executorInfo.totalCores, e.time))
      override def onExecutorRemoved(e: SparkListenerExecutorRemoved): Unit = {
        Ledger.executorRemoved(e.executorId)
        Mailboxes.forget(e.executorId)
        Gauges.executorRemoved(e.executorId)
      }
    })
    java.util.Map.of()
  }

  override def receive(message: Object): Object = message match {
    case Hello(executor, mailbox) =>
      Mailboxes.remember(executor, mailbox)
      Ledger.current
    case Report(executor, heard, lives, process) =>
      ReportBuffer.take(lives)
      Gauges.take(executor, lives, process)
      val now = Ledger.current
      if (heard < now.version) now else null
    case _ => null
  }
}
