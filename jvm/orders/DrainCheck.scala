package org.apache.spark.barograph.orders

import org.apache.spark.barograph.messages.Messages
import org.apache.spark.barograph.plugin.{Dropped, Mailboxes}

/** One instance: whether it reads from a source, whether it waits (a source: rests), rows received, rows sent. */
final case class HowFar(
    runId: String, epoch: Long, operator: String, index: Int, reads: Boolean, waits: Boolean, taken: Long, sent: Long)

/**
 * Whether a topology's sources rest and none of its rows is in flight. Executors are asked directly: their reports come
 * too seldom while sources are paused.
 *
 * Rows are in flight as long as more were sent than received, or an instance works. Answers come at different moments,
 * so one round proves nothing: a row may be sent after its sender has answered. Two consecutive rounds with equal
 * counts, in which every instance waits, prove it (Mattern's four-counter method).
 */
object DrainCheck {
  def isStill(topology: String, timeoutMs: Long): Boolean = {
    val first = ask(topology, timeoutMs)
    present(topology).exists(still(_, first)) && first == ask(topology, timeoutMs)
  }

  /** Whether all instances of its sources run in the present epoch and none of them rests. */
  def flows(topology: String, timeoutMs: Long): Boolean =
    present(topology).exists(flow(_, ask(topology, timeoutMs)))

  /** Of one round of answers: whether all instances of the epoch wait, and as many rows were received as sent. */
  private[barograph] def still(epoch: Epoch, found: Set[HowFar]): Boolean =
    whole(epoch, found) && found.forall(_.waits) && found.toSeq.map(_.taken).sum == found.toSeq.map(_.sent).sum

  private[barograph] def flow(epoch: Epoch, found: Set[HowFar]): Boolean = {
    val reading = found.filter(i => i.runId == epoch.runId && i.epoch == epoch.epoch && i.reads && !i.waits)
    val sources = epoch.sketch.operators.filter(_.source).map(_.name).toSet
    reading.map(i => (i.operator, i.index)) == epoch.sketch.instances.filter(i => sources(i._1)).toSet
  }

  /** Whether these are exactly the instances of the epoch. */
  private def whole(epoch: Epoch, found: Set[HowFar]): Boolean =
    found.forall(i => i.runId == epoch.runId && i.epoch == epoch.epoch) &&
      found.size == epoch.sketch.instances.size &&
      found.map(i => (i.operator, i.index)) == epoch.sketch.instances.toSet

  private def present(topology: String): Option[Epoch] = Ledger.epochsNow.find(_.topology == topology)

  private def ask(topology: String, timeoutMs: Long): Set[HowFar] =
    Mailboxes.ask(Mailboxes.all, Messages.askHowFar(topology), timeoutMs).values
      .flatMap(answer => Dropped.unless("how far an instance is")(Messages.howFarIn(answer)).getOrElse(Nil)).toSet
}
