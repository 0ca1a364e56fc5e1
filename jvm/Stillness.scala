package org.apache.spark.barograph

import scala.concurrent.Await
import scala.concurrent.duration._
import scala.util.Try

import org.apache.spark.rpc.RpcTimeout

/** Asked of an executor: how far are the instances of this topology that run there? */
final case class AskHowFar(topology: String)

/** One instance: whether it reads from a source, whether it waits (a source: rests), rows taken from others, rows sent. */
final case class HowFar(
    runId: String, epoch: Long, operator: String, index: Int, reads: Boolean, waits: Boolean, taken: Long, sent: Long)

/**
 * Whether a topology's sources rest and none of its rows is in flight. Executors are asked, not waited for: reports come
 * five times a second, which is too seldom for who holds sources back meanwhile.
 *
 * Rows are under way as long as more were sent than were taken, or somebody works. Answers come at different moments, so
 * one round proves nothing: a row may be sent behind the question's back. Two rounds, one after the other, that are the
 * same in every count and in which everybody waits, do (Mattern's four counters).
 */
object Stillness {
  def isStill(topology: String, timeoutMs: Long): Boolean = {
    val first = ask(topology, timeoutMs)
    still(topology, first) && first == ask(topology, timeoutMs)
  }

  /** Whether all instances of its sources run in the present epoch and none of them rests. */
  def flows(topology: String, timeoutMs: Long): Boolean =
    Ledger.epochsNow.find(_.topology == topology).exists { epoch =>
      val found = ask(topology, timeoutMs).filter(i => i.runId == epoch.runId && i.epoch == epoch.epoch && i.reads && !i.waits)
      val sources = epoch.sketch.operators.filter(_.source).map(_.name).toSet
      found.map(i => (i.operator, i.index)) == epoch.sketch.instances.filter(i => sources(i._1)).toSet
    }

  private def still(topology: String, found: Set[HowFar]): Boolean =
    whole(topology, found) && found.forall(_.waits) && found.toSeq.map(_.taken).sum == found.toSeq.map(_.sent).sum

  /** Whether these are all instances of the present epoch, and nobody else. */
  private def whole(topology: String, found: Set[HowFar]): Boolean =
    Ledger.epochsNow.find(_.topology == topology).exists { epoch =>
      found.forall(i => i.runId == epoch.runId && i.epoch == epoch.epoch) && found.size == epoch.sketch.instances.size &&
        found.map(i => (i.operator, i.index)) == epoch.sketch.instances.toSet
    }

  private def ask(topology: String, timeoutMs: Long): Set[HowFar] = {
    val limit = new RpcTimeout(timeoutMs.millis, "spark.barograph.stillness")
    val end = System.nanoTime() + timeoutMs * 1000000L
    val asked = Mailboxes.all.values.toSeq.map(box => Try(box.ask[Seq[HowFar]](AskHowFar(topology), limit)))
    asked.flatMap(_.toOption).flatMap { answer =>
      Try(Await.result(answer, math.max(1L, (end - System.nanoTime()) / 1000000L).millis)).getOrElse(Nil)
    }.toSet
  }
}
