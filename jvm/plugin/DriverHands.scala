package org.apache.spark.barograph.plugin

import java.util.{Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger}
import org.apache.spark.barograph.telemetry.{LifeReport, ProcessUse, Totals}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.scheduler._
import org.apache.spark.sql.streaming.StreamingQueryListener

/** An executor announces itself and where orders can be sent. The answer is the present state of the orders. */
final case class Hello(executor: String, mailbox: RpcEndpointRef)

/**
 * What an executor saw since its last report, and the latest orders it has. The answer is [[Orders]] if it is behind.
 */
final case class Report(executor: String, heard: Long, lives: Seq[LifeReport], process: ProcessUse)

class DriverHands extends DriverPlugin with Logging {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Ledger.reset()
    Totals.reset()
    Mailboxes.reset()
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(e: SparkListenerExecutorAdded): Unit =
        Ledger.executorAdded(
          ExecutorSeats(e.executorId, e.executorInfo.executorHost, e.executorInfo.totalCores, e.time))
      override def onExecutorRemoved(e: SparkListenerExecutorRemoved): Unit = {
        Ledger.executorRemoved(e.executorId)
        Mailboxes.forget(e.executorId)
        Totals.executorRemoved(e.executorId)
      }
      // The planner forgets ended runs too, before it seats an epoch; this frees their seats and cuts at once.
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case ended: StreamingQueryListener.QueryTerminatedEvent => Ledger.forget(ended.runId.toString)
        case _ =>
      }
    })
    java.util.Map.of()
  }

  override def receive(message: Object): Object = message match {
    case Hello(executor, mailbox) =>
      Mailboxes.remember(executor, mailbox)
      Ledger.current
    case Report(executor, heard, lives, process) =>
      Totals.take(executor, lives, process)
      val now = Ledger.current
      if (heard < now.version) now else null
    case _ => null
  }
}
