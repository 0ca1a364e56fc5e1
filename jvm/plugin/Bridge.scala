package org.apache.spark.barograph.plugin

import java.util.Base64

import scala.concurrent.duration.DurationLong
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.Path

import org.apache.spark.barograph.internals.{Repartition, SparkInternals}
import org.apache.spark.barograph.kafka.Topics
import org.apache.spark.barograph.lease.Leases
import org.apache.spark.barograph.orders.{Avoided, DrainCheck, InstanceKey, Ledger, Share, Warm}
import org.apache.spark.barograph.telemetry.{Totals, View}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}

/**
 * The calls from Python. `observe` reads running totals and changes nothing, `order` takes a plan; the calls that wait
 * save Python from polling. Rows never pass through here.
 */
object Bridge {
  private val json = new ObjectMapper()
  private val LookMs = 10L

  /**
   * What is newer than the cursor, as [[View]] describes it; 0 for everything. It changes nothing, so any number of
   * readers may ask at any time. Figures are as of now if they are asked for (withMeters), else as of the last reports,
   * and new reports are on their way for the next call. In base 64, because Py4J would pass bytes one by one.
   */
  def observe(session: SparkSession, cursor: Long, withMeters: Boolean): String = {
    // Asked first: a run that begins meanwhile is seen the next time.
    val active = SparkInternals.activeQueries(session).map(_.runId.toString).toSet
    val (executors, stamp) = Ledger.executorsNow(SparkInternals.context(session))
    FreshReports.ask(executors.map(_.id), waits = withMeters)
    Base64.getEncoder.encodeToString(View.of(cursor, withMeters, executors, stamp, active))
  }

  /**
   * Takes orders as JSON:
   * {"topologies": {NAME: {"parallelism": {OPERATOR: n}, "places": [[OPERATOR, index, EXECUTOR], ...]}}, "cut": [NAME],
   *  "hold": {NAME: ms}}
   * A topology's orders replace all its earlier ones, and may come before it starts. Returns {NAME: epoch that is cut,
   * ...} as JSON.
   */
  def order(text: String): String = {
    val node = json.readTree(text)
    val changes = node.path("topologies").properties().asScala.map(q => q.getKey -> change(q.getValue)).toMap
    val cut = node.path("cut").elements().asScala.map(_.asText()).toSet
    val hold = node.path("hold").properties().asScala.map(h => h.getKey -> h.getValue.asLong()).toMap
    val ending = Ledger.order(changes, cut, hold)
    if (ending.nonEmpty) Mailboxes.push(Ledger.current)
    json.writeValueAsString(ending.map { case (q, e) => q -> Long.box(e) }.asJava)
  }

  /** Exactly the sources of the topologies in this JSON list rest from now on. */
  def rest(text: String): Unit = {
    Ledger.rest(json.readTree(text).elements().asScala.map(_.asText()).toSet)
    Mailboxes.push(Ledger.current)
  }

  /**
   * The length of epochs in milliseconds, also of the present ones: {NAME: ms, ...} as JSON. Other topologies
   * have their trigger's length.
   */
  def pace(text: String): Unit = {
    Ledger.pace(json.readTree(text).properties().asScala.map(p => p.getKey -> p.getValue.asLong()).toMap)
    Mailboxes.push(Ledger.current)
  }

  /**
   * The CPU of instances in per cent of a core: {NAME: [[OPERATOR, index, limit, reserved], ...]} as JSON. Other
   * instances have no limit.
   */
  def share(text: String): Unit = {
    def milli(value: JsonNode): Long = Math.round(value.asDouble() * 1000.0)
    val shares = json.readTree(text).properties().asScala.flatMap { topology =>
      topology.getValue.elements().asScala.map { s =>
        InstanceKey(topology.getKey, s.get(0).asText(), s.get(1).asInt()) -> Share(milli(s.get(2)), milli(s.get(3)))
      }
    }
    Ledger.share(shares.toMap)
    Mailboxes.push(Ledger.current)
  }

  /** By which way executors hold instances to their limits from now on. */
  def enforce(way: String): Unit = {
    Ledger.enforceBy(way)
    Mailboxes.push(Ledger.current)
  }

  /** Whether a topology's sources rest and none of its rows is in flight. */
  def isStill(topology: String, timeoutMs: Long): Boolean = DrainCheck.isStill(topology, timeoutMs)

  /** Whether all source instances of a topology run and read. */
  def flows(topology: String, timeoutMs: Long): Boolean = DrainCheck.flows(topology, timeoutMs)

  /** The driver's port of Spark's block transfer. */
  def blockPort(): Int = SparkInternals.blockPort

  private def change(node: JsonNode): (Map[String, Int], Map[(String, Int), String]) = {
    val parallelism = node.path("parallelism").properties().asScala.map(p => p.getKey -> p.getValue.asInt()).toMap
    val places = node.path("places").elements().asScala.map(p =>
      (p.get(0).asText(), p.get(1).asInt()) -> p.get(2).asText()).toMap
    (parallelism, places)
  }

  /**
   * How a query run ended: "" while it runs, "stopped", or "died: " and the error. A plain string, because on a busy
   * machine Python takes seconds to convert a thrown exception, and the query is down for that time.
   */
  def awaitEnd(query: StreamingQuery, timeoutMs: Long): String =
    try { if (query.awaitTermination(timeoutMs)) "stopped" else "" }
    catch { case e: StreamingQueryException => s"died: ${e.getMessage}${Causes.of(e)}" }

  /**
   * The run that was started in the place of one that has ended: Spark stops a run for another start of the same query,
   * and lists the new one a moment later. "" if there is none in time.
   */
  def successor(session: SparkSession, query: StreamingQuery, timeoutMs: Long): String = {
    val end = timeoutMs.millis.fromNow
    def found: Option[String] = SparkInternals.activeQueries(session)
      .collectFirst { case q if q.id == query.id && q.runId != query.runId => q.runId.toString }
    Iterator.continually {
      val run = found
      if (run.isEmpty && end.hasTimeLeft()) Thread.sleep(LookMs)
      run
    }.find(run => run.isDefined || !end.hasTimeLeft()).flatten.getOrElse("")
  }

  /**
   * {"living": [executor, ...], "silent": [...]} as JSON: executors that answer, and executors that do not but are
   * still counted.
   */
  def pulse(session: SparkSession, timeoutMs: Long): String = {
    val (living, silent) = Pulse.take(SparkInternals.context(session), timeoutMs)
    json.writeValueAsString(java.util.Map.of("living", living.asJava, "silent", silent.asJava))
  }

  /**
   * {"last": {EXECUTOR: [milliseconds since its last report, [executors that it does not reach]], ...}, "leaving":
   * [EXECUTOR, ...]} as JSON: live executors that have reported; live ones that were decommissioned, which get no
   * instances any more.
   */
  def lastReports(session: SparkSession): String = {
    val context = SparkInternals.context(session)
    val live = SparkInternals.liveExecutors(context)
    val unreachable = Avoided.unreachable
    val last = Totals.ages(live.toSeq).map { case (id, ms) =>
      id -> Array[AnyRef](Long.box(ms), unreachable.getOrElse(id, Nil).filter(live).toArray)
    }
    json.writeValueAsString(
      java.util.Map.of[String, AnyRef]("last", last.asJava, "leaving", SparkInternals.decommissioned(context).asJava))
  }

  /**
   * [[topology, topic, partitions that its present epoch reads, partitions that there are], ...] as JSON: topics that
   * have grown since the epoch began.
   */
  def grownTopics(): String = {
    val runs = Ledger.epochsNow.map(_.runId).toSet
    json.writeValueAsString(Topics.grown(runs).map { g =>
      java.util.List.of[AnyRef](g.topology, g.topic, Int.box(g.read), Int.box(g.partitions))
    }.asJava)
  }

  /** Why executors end before their part of the plug-in runs; empty if none did, or one has come to run since. */
  def stillborn(): String = Stillborn.why

  /** End an executor that does not answer; the cluster starts another in its place. False if there is none such. */
  def endSilent(session: SparkSession, id: String, why: String): Boolean =
    SparkInternals.endSilent(SparkInternals.context(session), id, why)

  /** Exactly the executors in this JSON list get no instances from the next epoch on, if others have seats enough. */
  def avoid(executors: String): Unit =
    Avoided.set(json.readTree(executors).elements().asScala.map(_.asText()).toSet)

  /** [[instance, executor], ...] as JSON: instances that would sit elsewhere if the topology's next epoch began now. */
  def foresee(session: SparkSession, topology: String): String = {
    val moved = Ledger.foresee(topology, Ledger.liveExecutors(SparkInternals.context(session)))
    json.writeValueAsString(moved.map(s => java.util.List.of(Int.box(s.index), s.executor)).asJava)
  }

  /** End a query run as if it had failed for this reason. Its epoch is not committed. */
  def endRun(session: SparkSession, run: String, why: String): Unit =
    SparkInternals.context(session).cancelJobGroup(run, why)

  /**
   * End these executors, unless one of them runs a task: then none ends. left: how many are wanted from now on; below
   * 0: the others that live now.
   */
  def release(session: SparkSession, executors: String, left: Int): Boolean =
    SparkInternals.release(
      SparkInternals.context(session), json.readTree(executors).elements().asScala.map(_.asText()).toSeq, left)

  /** Want so many executors in all; below 0: one wherever there is room, as a standalone cluster gives at the start. */
  def want(session: SparkSession, count: Int): Unit =
    SparkInternals.want(SparkInternals.context(session), if (count < 0) Int.MaxValue else count)

  /**
   * Wait until an epoch later than `epoch` is planned, which is after `epoch` is committed; -1 on timeout. A number not
   * above `epoch`: the query run that was cut has died, and the next run has begun with the new orders.
   */
  def awaitEpochAfter(topology: String, epoch: Long, timeoutMs: Long): Long =
    Ledger.awaitEpochAfter(topology, epoch, timeoutMs)

  /**
   * Wait until a topology that was cut and held is between two epochs; false if it died, or on timeout, and then it is
   * not held any more.
   */
  def awaitHeld(topology: String, timeoutMs: Long): Boolean = Ledger.awaitHeld(topology, timeoutMs)

  /** A topology that was to be held, or is held, goes on. */
  def releaseHold(topology: String): Unit = Ledger.release(topology)

  /**
   * Prepare executors for instances that move to them, [[instance, executor], ...] as JSON. Returns whether it was done
   * in time.
   */
  def warm(session: SparkSession, topology: String, moves: String, timeoutMs: Long): Boolean = {
    val listed = json.readTree(moves).elements().asScala.map(m => (m.get(0).asInt(), m.get(1).asText())).toSeq
    Warm.targets(session, topology, listed, timeoutMs)
  }

  /** End an executor; the cluster starts another in its place. */
  def replaceExecutor(session: SparkSession, id: String): Boolean =
    SparkInternals.context(session).killAndReplaceExecutor(id)

  /** Split the state of a stopped query over `count` instances; "" when done, else why not. */
  def repartition(session: SparkSession, checkpoint: String, count: Int): String =
    answer(Repartition.run(session, checkpoint, count))

  /** The number of instances an unfinished repartition was meant to give; 0 if there is none. */
  def unfinishedRepartition(session: SparkSession, checkpoint: String): Int =
    Repartition.unfinished(session, checkpoint)

  /** Undo an unfinished repartition; "" when done, else why not. */
  def undoRepartition(session: SparkSession, checkpoint: String): String = answer(Repartition.undo(session, checkpoint))

  /** Whether the lease on a checkpoint stays when its query ends, because it may be started again. */
  def keepLease(checkpoint: String, isKept: Boolean): Unit = Leases.keep(new Path(checkpoint), isKept)

  private def answer(work: => Any): String =
    try { work; "" } catch { case NonFatal(e) => s"${e.getClass.getSimpleName}: ${e.getMessage}" }
}
