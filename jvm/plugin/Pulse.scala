package org.apache.spark.barograph.plugin

import scala.concurrent.Await
import scala.concurrent.duration._
import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.rpc.RpcTimeout

/** A question to an executor; one that is alive answers true. */
case object AreYouThere

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
    val limit = new RpcTimeout(timeoutMs.millis, "spark.barograph.pulse")
    val end = System.nanoTime() + timeoutMs * 1000000L
    val asked = Mailboxes.all.toSeq.filter { case (id, _) => counted(id) }
      .map { case (id, box) => id -> Try(box.ask[Boolean](AreYouThere, limit)) }
    val answered = asked.collect {
      case (id, question) if question.toOption.exists { answer =>
        Try(Await.result(answer, math.max(1L, (end - System.nanoTime()) / 1000000L).millis)).getOrElse(false)
      } => id
    }.toSet
    // An executor that has not announced itself yet cannot be asked: it is new, and counts as living.
    val known = asked.map(_._1).toSet
    val living = counted.filter(id => answered(id) || !known(id))
    (living.toSeq.sorted, (counted -- living).toSeq.sorted)
  }
}
