package org.apache.spark.barograph.plugin

import java.util.{Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, PluginContext}
import org.apache.spark.barograph.enforce.Way
import org.apache.spark.barograph.internals.{Mailbox, SparkInternals}
import org.apache.spark.barograph.kafka.Topics
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
    Ledger.enforceBy(context.getConf.get(Way.Setting, Way.Auto))
    Avoided.reset()
    Totals.reset()
    Topics.reset()
    Mailboxes.reset()
    Stillborn.reset()
    FreshReports.reset()
    Leases.watch(() => SparkInternals.activeCheckpoints)
    ShuffleKey.renew()
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(e: SparkListenerExecutorAdded): Unit = {
        Ledger.executorAdded(DriverHands.seatsOf(e, SparkInternals.tasksAtOnce(context.getConf, _)))
        Totals.executorAdded(e.executorId)
      }
      override def onExecutorRemoved(e: SparkListenerExecutorRemoved): Unit = {
        Stillborn.removed(Mailboxes.all.contains(e.executorId), e.reason)
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

  /** The answer is the key or the present orders, or null if the executor has them or its message was dropped. */
  override def receive(message: Object): Object = Dropped.unless("a message from an executor")(answer(message)).orNull

  private def answer(message: AnyRef): Array[Byte] = message match {
    case Array(hello: Array[Byte], reference: AnyRef) =>
      val mailbox = Mailbox.of(reference).getOrElse(throw new Malformed(s"$reference is no mailbox"))
      Mailboxes.remember(Messages.helloIn(hello), mailbox)
      Stillborn.greeted()
      Messages.orders(Ledger.current)
    case question: Array[Byte] if Wire.kindOf(question) == Wire.AskKey => Messages.key(ShuffleKey.get)
    case bytes: Array[Byte] => DriverHands.taken(bytes).orNull
    case other => throw new Malformed(s"it is a ${other.getClass.getName}")
  }
}

object DriverHands {
  /** Take in a report. Returns the present orders if its executor does not have them. */
  private[plugin] def taken(bytes: Array[Byte]): Option[Array[Byte]] = {
    val report = Messages.reportIn(bytes)
    Totals.take(report.executor, report.lives, report.process)
    Avoided.reported(report.executor, report.unreachable)
    Ledger.executorSays(report.executor, report.capacity, report.enforced)
    Topics.reported(report.topics)
    val now = Ledger.current
    if (report.heard < now.version) Some(Messages.orders(now)) else None
  }

  /** tasksAtOnce: how many tasks so many cores run at once. */
  private[plugin] def seatsOf(e: SparkListenerExecutorAdded, tasksAtOnce: Int => Int): ExecutorSeats = {
    val cores = e.executorInfo.totalCores
    ExecutorSeats(e.executorId, e.executorInfo.executorHost, tasksAtOnce(cores), e.time, cores)
  }
}
