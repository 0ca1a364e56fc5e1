package org.apache.spark.barograph.plugin

import java.util.{Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.barograph.internals.{Mailbox, SparkInternals}
import org.apache.spark.barograph.lease.Leases
import org.apache.spark.barograph.messages.{Malformed, Messages, Wire}
import org.apache.spark.barograph.orders.{Avoided, ExecutorSeats, Ledger}
import org.apache.spark.barograph.shuffle.ShuffleKey
import org.apache.spark.barograph.telemetry.Totals
import org.apache.spark.scheduler.{
  SparkListener, SparkListenerEvent, SparkListenerExecutorAdded, SparkListenerExecutorRemoved}
import org.apache.spark.sql.streaming.StreamingQueryListener

/** The driver's part. A message that cannot be read is logged and dropped. */
class DriverHands extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Ledger.reset()
    Avoided.reset()
    Totals.reset()
    Mailboxes.reset()
    Leases.watch(() => SparkInternals.activeCheckpoints)
    ShuffleKey.renew()
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(e: SparkListenerExecutorAdded): Unit =
        Ledger.executorAdded(DriverHands.seatsOf(e, SparkInternals.tasksAtOnce(context.getConf, _)))
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

  override def shutdown(): Unit = Leases.end()

  /** The answer is the present orders, or null if the executor has them or its message was dropped. */
  /** The answer is the key or the present orders, or null if the executor has them or its message was dropped. */
  override def receive(message: Object): Object = Dropped.unless("a message from an executor")(answer(message)).orNull

  private def answer(message: AnyRef): Array[Byte] = message match {
    case Array(hello: Array[Byte], reference: AnyRef) =>
      val mailbox = Mailbox.of(reference).getOrElse(throw new Malformed(s"$reference is no mailbox"))
      Mailboxes.remember(Messages.helloIn(hello), mailbox)
      Messages.orders(Ledger.current)
    case question: Array[Byte] if Wire.kindOf(question) == Wire.AskKey => Messages.key(ShuffleKey.get)
    case bytes: Array[Byte] =>
      val report = Messages.reportIn(bytes)
      Totals.take(report.executor, report.lives, report.process)
      Avoided.reported(report.executor, report.unreachable)
      val now = Ledger.current
      if (report.heard < now.version) Messages.orders(now) else null
    case other => throw new Malformed(s"it is a ${other.getClass.getName}")
  }
}

object DriverHands {
  /** tasksAtOnce: how many tasks so many cores run at once. */
  private[plugin] def seatsOf(e: SparkListenerExecutorAdded, tasksAtOnce: Int => Int): ExecutorSeats = {
    val cores = e.executorInfo.totalCores
    ExecutorSeats(e.executorId, e.executorInfo.executorHost, tasksAtOnce(cores), e.time, cores)
  }
}
