package org.apache.spark.barograph.testing

import org.apache.spark.SparkEnv
import org.apache.spark.barograph.internals.Mailbox
import org.apache.spark.barograph.messages.Messages
import org.apache.spark.barograph.orders.Cuts
import org.apache.spark.barograph.plugin.{ExecutorHands, ExecutorMail}

/**
 * Delays orders to one executor: gives the driver another mailbox for it, which takes its time. Called by tests with
 * Spark SQL's reflect().
 */
object DelayedOrders {
  private var nowMs = 0L

  /** Milliseconds; 0 ends the delay. Returns the executor it was called on. */
  def on(executor: String, ms: Long): String = synchronized {
    val here = SparkEnv.get.executorId
    if (here == executor && ms != nowMs) {
      nowMs = ms
      val box = Mailbox.open(s"barograph-orders-$here-${System.nanoTime()}", take(ms), ExecutorMail.answer(_))
      ExecutorHands.plugin.ask(Array[AnyRef](Messages.hello(here), box))
    }
    here
  }

  // Orders also come as answers to reports. Those wait for the lock.
  private def take(ms: Long): Array[Byte] => Unit =
    if (ms == 0L) ExecutorMail.take
    else message => Cuts.synchronized { Thread.sleep(ms); ExecutorMail.take(message) }
}
