package org.apache.spark.barograph.plugin

import java.util.Arrays

import org.apache.spark.SparkContext
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.messages.Messages

/**
 * Which executors answer. The driver counts an executor for a moment after it has died, and an epoch that is planned in
 * that moment would be sent to it; so this is called before a query is restarted.
 */
object Pulse {
  /**
   * (executors that answer, executors that the driver counts but that do not). All are asked at once, with one timeout.
   */
  def take(context: SparkContext, timeoutMs: Long): (Seq[String], Seq[String]) = {
    val counted = SparkInternals.liveExecutors(context)
    val known = Mailboxes.all.filter { case (id, _) => counted(id) }
    val answered = Mailboxes.ask(known, Messages.areYouThere, timeoutMs).filter { case (_, answer) =>
      Arrays.equals(answer, Messages.here)
    }
    // An executor that has not announced itself yet cannot be asked: it is new, and counts as living.
    val living = counted.filter(id => answered.contains(id) || !known.contains(id))
    (living.toSeq.sorted, (counted -- living).toSeq.sorted)
  }
}
