package org.apache.spark.barograph.plugin

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.barograph.internals.{Repartition, SparkInternals}
import org.apache.spark.barograph.orders.{DrainCheck, Ledger, Warm}
import org.apache.spark.barograph.telemetry.{Arrow, Gauges, ReportBuffer}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}

/**
 * The calls from Python. `observe` returns everything reported since the last call and resets it, `order` takes a plan;
 * the calls that wait save Python from polling. Rows never pass through here.
 */
object Bridge {
  private val json = new ObjectMapper()
  private val MostCauses = 10

  /**
   * Named Arrow streams, each as (length of name, name, length, bytes):
   *  - executors: id, host, seats, since_ms
   *  - operators: topology, run, epoch, operator, parallelism, source, sink, stateful, fixed_because, repartition
   *  - edges:     topology, source, target, grouping
   *  - seated:    topology, run, epoch, orders, planned_ms, operator, instance, executor, wanted, because
   *               (every epoch planned since the last call, and the present one of each topology)
   *  - lives:     topology, run, epoch, operator, instance, executor, pid, tid, started_ms, ended_ms, rows_read
   *  - output:    topology, centisecond (since 1970), rows
   *  - meters:    topology, operator, instance, arrived, arrived_known, executed, emitted, pending, cpu_ns, busy_ns,
   *               idle_ns, blocked_ns (since the last call; pending as of now)
   *  - traffic:   topology, source, target, sender, receiver, rows (since the last call; only pairs with rows)
   *  - latency:   topology, operator, instance, clock (due or read), bucket, rows (since the last call)
   *  - latency_sums: topology, operator, instance, clock, sum_ms, max_ms (the maximum of the epoch so far)
   *  - processes: executor, cpu_ns (since the last call), resident_bytes
   */
  def observe(session: SparkSession): String = {
    val context = SparkInternals.context(session)
    Ledger.keepOnly(SparkInternals.activeQueries(session).map(_.runId.toString).toSet)
    val executors = Ledger.liveExecutors(context)
    val now = Ledger.epochsNow
    val operators = now.flatMap(e => e.sketch.operators.map(e -> _))
    val edges = now.flatMap(e => e.sketch.edges.map(e.topology -> _))
    val seated = (Ledger.takePlanned() ++ now).distinct.flatMap(e => e.seated.map(e -> _))
    val lives = ReportBuffer.takeLives()
    val output = ReportBuffer.takeOutput()
    val gauges = Gauges.take(now)
    val targets = edges.map { case (topology, e) => (topology, e.source) -> e.target }.toMap
    val traffic = gauges.flatMap(g => targets.get((g.topology, g.operator)).toSeq.flatMap(target =>
      g.sent.indices.filter(g.sent(_) > 0).map(j => (g, target, j, g.sent(j)))))
    val latencies = gauges.flatMap(g => g.latency.collect { case (clock, l) if l.rows.nonEmpty => (g, clock, l) })
    val buckets = latencies.flatMap { case (g, clock, l) =>
      l.rows.toSeq.sorted.map { case (b, n) => (g, clock, b, n) }
    }
    val processes = Gauges.takeProcesses()
    import Arrow.{Text, Whole}
    frames(
      "executors" -> Arrow.bytes(
        Text("id", executors.map(_.id)), Text("host", executors.map(_.host)),
        Whole("seats", executors.map(_.seats.toLong)), Whole("since_ms", executors.map(_.sinceMs))),
      "operators" -> Arrow.bytes(
        Text("topology", operators.map(_._1.topology)), Text("run", operators.map(_._1.runId)),
        Whole("epoch", operators.map(_._1.epoch)),
        Text("operator", operators.map(_._2.name)), Whole("parallelism", operators.map(_._2.parallelism.toLong)),
        Whole("source", operators.map(o => if (o._2.source) 1L else 0L)),
        Whole("sink", operators.map(o => if (o._2.sink) 1L else 0L)),
        Whole("stateful", operators.map(o => if (o._2.stateful) 1L else 0L)),
        Text("fixed_because", operators.map(_._2.fixedBecause)),
        Whole("repartition", operators.map(o => if (o._2.repartition) 1L else 0L))),
      "edges" -> Arrow.bytes(
        Text("topology", edges.map(_._1)), Text("source", edges.map(_._2.source)),
        Text("target", edges.map(_._2.target)), Text("grouping", edges.map(_._2.grouping))),
      "seated" -> Arrow.bytes(
        Text("topology", seated.map(_._1.topology)), Text("run", seated.map(_._1.runId)),
        Whole("epoch", seated.map(_._1.epoch)), Whole("orders", seated.map(_._1.orders.version)),
        Whole("planned_ms", seated.map(_._1.plannedMs)), Text("operator", seated.map(_._2.operator)),
        Whole("instance", seated.map(_._2.index.toLong)), Text("executor", seated.map(_._2.executor)),
        Text("wanted", seated.map(_._2.wanted)), Text("because", seated.map(_._2.because))),
      "lives" -> Arrow.bytes(
        Text("topology", lives.map(_.topology)), Text("run", lives.map(_.runId)), Whole("epoch", lives.map(_.epoch)),
        Text("operator", lives.map(_.operator)), Whole("instance", lives.map(_.index.toLong)),
        Text("executor", lives.map(_.executor)), Whole("pid", lives.map(_.pid.toLong)),
        Whole("tid", lives.map(_.tid.toLong)), Whole("started_ms", lives.map(_.startedMs)),
        Whole("ended_ms", lives.map(_.endedMs)),
        Whole("rows_read", lives.map(_.rowsRead))),
      "output" -> Arrow.bytes(
        Text("topology", output.map(_._1)), Whole("centisecond", output.map(_._2)), Whole("rows", output.map(_._3))),
      "meters" -> Arrow.bytes(
        Text("topology", gauges.map(_.topology)), Text("operator", gauges.map(_.operator)),
        Whole("instance", gauges.map(_.index.toLong)), Whole("arrived", gauges.map(_.arrived)),
        Whole("arrived_known", gauges.map(g => if (g.arrivedKnown) 1L else 0L)),
        Whole("executed", gauges.map(_.executed)), Whole("emitted", gauges.map(_.emitted)),
        Whole("pending", gauges.map(_.pending)), Whole("cpu_ns", gauges.map(_.cpuNs)),
        Whole("busy_ns", gauges.map(_.busyNs)), Whole("idle_ns", gauges.map(_.idleNs)),
        Whole("blocked_ns", gauges.map(_.blockedNs))),
      "traffic" -> Arrow.bytes(
        Text("topology", traffic.map(_._1.topology)), Text("source", traffic.map(_._1.operator)),
        Text("target", traffic.map(_._2)), Whole("sender", traffic.map(_._1.index.toLong)),
        Whole("receiver", traffic.map(_._3.toLong)), Whole("rows", traffic.map(_._4))),
      "latency" -> Arrow.bytes(
        Text("topology", buckets.map(_._1.topology)), Text("operator", buckets.map(_._1.operator)),
        Whole("instance", buckets.map(_._1.index.toLong)), Text("clock", buckets.map(_._2)),
        Whole("bucket", buckets.map(_._3.toLong)), Whole("rows", buckets.map(_._4))),
      "latency_sums" -> Arrow.bytes(
        Text("topology", latencies.map(_._1.topology)), Text("operator", latencies.map(_._1.operator)),
        Whole("instance", latencies.map(_._1.index.toLong)), Text("clock", latencies.map(_._2)),
        Whole("sum_ms", latencies.map(_._3.sumMs)), Whole("max_ms", latencies.map(_._3.maxMs))),
      "processes" -> Arrow.bytes(
        Text("executor", processes.map(_._1)), Whole("cpu_ns", processes.map(_._2)),
        Whole("resident_bytes", processes.map(_._3))))
  }

  /** In base 64, because Py4J would pass bytes one by one. */
  private def frames(named: (String, Array[Byte])*): String = {
    val bytes = new ByteArrayOutputStream()
    val out = new DataOutputStream(bytes)
    for ((name, content) <- named) {
      val label = name.getBytes(UTF_8)
      out.writeInt(label.length); out.write(label)
      out.writeInt(content.length); out.write(content)
    }
    Base64.getEncoder.encodeToString(bytes.toByteArray)
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

  /** Whether a topology's sources rest and none of its rows is in flight. */
  def isStill(topology: String, timeoutMs: Long): Boolean = DrainCheck.isStill(topology, timeoutMs)

  /** Whether all source instances of a topology run and read. */
  def flows(topology: String, timeoutMs: Long): Boolean = DrainCheck.flows(topology, timeoutMs)

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
    catch { case e: StreamingQueryException => s"died: ${e.getMessage}${causes(e)}" }

  /** Spark's message often has only the words of the cause; its class tells an outage from a bug. */
  private def causes(error: Throwable): String =
    Iterator.iterate(error.getCause)(_.getCause).takeWhile(_ != null).take(MostCauses).map { cause =>
      s"\nCaused by: ${cause.getClass.getName}: ${String.valueOf(cause.getMessage).linesIterator.nextOption().mkString}"
    }.mkString

  /**
   * {"living": [executor, ...], "silent": [...]} as JSON: executors that answer, and executors that do not but are
   * still counted.
   */
  def pulse(session: SparkSession, timeoutMs: Long): String = {
    val (living, silent) = Pulse.take(SparkInternals.context(session), timeoutMs)
    json.writeValueAsString(java.util.Map.of("living", living.asJava, "silent", silent.asJava))
  }

  /** End these executors, unless one of them runs a task: then none ends. They are not replaced before `wantAll`. */
  def release(session: SparkSession, executors: String): Boolean =
    SparkInternals.release(
      SparkInternals.context(session), json.readTree(executors).elements().asScala.map(_.asText()).toSeq)

  /** Request an executor wherever there is room for one, as at the start. */
  def wantAll(session: SparkSession): Unit = SparkInternals.wantAll(SparkInternals.context(session))

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

  private def answer(work: => Any): String =
    try { work; "" } catch { case NonFatal(e) => s"${e.getClass.getSimpleName}: ${e.getMessage}" }
}
