package org.apache.spark.barograph.telemetry

import scala.collection.mutable

import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger, Stamps}

/**
 * What the driver knows, for a reader that knows everything up to `cursor` (0: nothing). Reading changes nothing, and
 * readers do not know of each other. Numbers are running totals; what seldom changes is left out unless it has changed
 * after the cursor.
 *
 * Columns, each a list (see [[ArrowMessage]]):
 *  - cursor: for the next call
 *  - topology, present: the id of every topology that is remembered, and whether it runs; instances are listed topology
 *    by topology in this order
 *  - read: rows that each instance has read from its source in the present epoch
 *  - only with meters: arrived, arrived_known, executed, emitted, pending (as of now), cpu_ns, busy_ns, idle_ns,
 *    blocked_ns, throttled_ns, held_ms (since when it goes by its present limit; 0 if it does not), age_ms (since the
 *    last report of the executor that runs it; of a source also how old its backlog is), by instance; traffic: of
 *    every edge, sender by sender, the rows sent to each receiver; executor_cpu_ns, executor_resident_bytes,
 *    executor_age_ms, by executor
 *  - executor_id, executor_host, executor_seats, executor_since_ms, executor_cores, executor_group,
 *    executor_group_cores, executor_allowed_cores (both in thousandths; see [[Capacity]]), executor_enforces,
 *    executor_enforces_because: all, if one of them has changed
 *  - layout_topology, layout_name: topologies whose layout has changed, with operator_layout (the position in that
 *    list), operator_name, operator_parallelism, operator_source, operator_stateful, operator_fixed_because,
 *    operator_repartition, edge_layout, edge_source, edge_target, edge_grouping, and instance_id: one for each
 *    instance, operator by operator
 *  - epoch_topology, epoch_run, epoch_number, epoch_orders, epoch_planned_ms: epochs that were planned, with seat_epoch
 *    (the position in that list), seat_operator, seat_instance, seat_executor, seat_wanted, seat_because
 *  - life_topology, life_run, life_epoch, life_operator, life_instance, life_executor, life_pid, life_tid,
 *    life_started_ms, life_ended_ms, life_read: lives that began, ended or were superseded
 *  - output_topology (id), output_centisecond (since 1970), output_rows: counts that have changed
 *  - bucket_topology (id), bucket_clock (0: due, 1: read, 2: record), bucket, bucket_rows: latency counts that have
 *    changed, with latency_topology, latency_clock, latency_sum_ms, latency_epoch_max_ms, latency_max_ms
 */
object View {
  def of(
      cursor: Long, withMeters: Boolean, executors: Seq[ExecutorSeats], executorsStamp: Long,
      isActive: String => Boolean, nowNs: Long = System.nanoTime()): Array[Byte] = {
    val message = new ArrowMessage
    // First: what changes from here on may be sent now, and is sent again to a reader that comes with this cursor.
    message.whole("cursor", Array(Stamps.now))
    if (executorsStamp > cursor) {
      message.text("executor_id", executors.map(_.id))
      message.text("executor_host", executors.map(_.host))
      message.whole("executor_seats", executors.map(_.seats.toLong).toArray)
      message.whole("executor_since_ms", executors.map(_.sinceMs).toArray)
      message.whole("executor_cores", executors.map(_.cores.toLong).toArray)
      message.text("executor_group", executors.map(_.capacity.groupName))
      message.whole("executor_group_cores", executors.map(_.capacity.groupMilliCores).toArray)
      message.whole("executor_allowed_cores", executors.map(_.capacity.allowedMilliCores).toArray)
      message.text("executor_enforces", executors.map(_.enforced.way))
      message.text("executor_enforces_because", executors.map(_.enforced.because))
    }
    Totals.read(nowNs) { (topologies, lives, process, age, plannedUntil) =>
      planned(message, cursor, plannedUntil)
      message.whole("topology", topologies.map(_.id).toArray)
      message.whole("present", topologies.map { t =>
        if (t.endedNs == 0L && t.present != null && isActive(t.present.runId)) 1L else 0L
      }.toArray)
      layouts(message, topologies.filter(_.layoutStamp > cursor))
      changed(message, lives.after(cursor))
      output(message, topologies, cursor)
      latency(message, topologies, cursor)
      message.whole("read", column(topologies)(_.rowsRead))
      if (withMeters) {
        meters(message, topologies, age, nowNs)
        message.whole("executor_cpu_ns", executors.map(e => process(e.id).cpuNs).toArray)
        message.whole("executor_resident_bytes", executors.map(e => process(e.id).residentBytes).toArray)
        message.whole("executor_age_ms", executors.map(e => age(e.id).getOrElse(-1L)).toArray)
      }
    }
    message.bytes()
  }

  private def column(topologies: Seq[TopologyTotals])(value: InstanceTotals => Long): Array[Long] = {
    val found = new Array[Long](topologies.map(_.instances.length).sum)
    var at = 0
    for (t <- topologies; instance <- t.instances) { found(at) = value(instance); at += 1 }
    found
  }

  private def meters(
      message: ArrowMessage, topologies: Seq[TopologyTotals], age: String => Option[Long], nowNs: Long): Unit = {
    def whole(name: String)(value: InstanceTotals => Long): Unit = message.whole(name, column(topologies)(value))
    whole("arrived")(_.arrived)
    whole("arrived_known")(i => if (i.backlog.isKnown(nowNs)) 1L else 0L)
    whole("executed")(_.executed)
    whole("emitted")(_.emitted)
    whole("cpu_ns")(_.cpuNs)
    whole("busy_ns")(_.busyNs)
    whole("idle_ns")(_.idleNs)
    whole("blocked_ns")(_.blockedNs)
    whole("throttled_ns")(_.throttledNs)
    whole("held_ms")(_.meter.heldMs)
    message.whole("pending", topologies.flatMap(_.pending(nowNs)).toArray)
    val ages = mutable.Map[String, Long]()
    message.whole("age_ms", topologies.flatMap { t =>
      // An executor that has not reported yet: since its epoch was planned.
      lazy val plannedMs = if (t.present == null) 0L else Math.max(0L, nowNs - t.plannedNs) / 1000000L
      t.instances.map { i =>
        i.backlog.ageMs(nowNs, ages.getOrElseUpdate(i.executor, age(i.executor).getOrElse(plannedMs)))
      }
    }.toArray)
    val traffic = mutable.ArrayBuilder.make[Long]
    for (t <- topologies; edge <- t.sketch.edges) {
      val receivers = t.sketch.parallelism(edge.target)
      for (i <- t.instances if i.operator == edge.source)
        traffic ++= (if (i.sent.length == receivers) i.sent else java.util.Arrays.copyOf(i.sent, receivers))
    }
    message.whole("traffic", traffic.result())
  }

  private def layouts(message: ArrowMessage, changed: Seq[TopologyTotals]): Unit = if (changed.nonEmpty) {
    val operators = changed.zipWithIndex.flatMap { case (t, i) => t.sketch.operators.map(i.toLong -> _) }
    val edges = changed.zipWithIndex.flatMap { case (t, i) => t.sketch.edges.map(i.toLong -> _) }
    def truth(value: Boolean): Long = if (value) 1L else 0L
    message.whole("layout_topology", changed.map(_.id).toArray)
    message.text("layout_name", changed.map(_.name))
    message.whole("operator_layout", operators.map(_._1).toArray)
    message.text("operator_name", operators.map(_._2.name))
    message.whole("operator_parallelism", operators.map(_._2.parallelism.toLong).toArray)
    message.whole("operator_source", operators.map(o => truth(o._2.source)).toArray)
    message.whole("operator_stateful", operators.map(o => truth(o._2.stateful)).toArray)
    message.text("operator_fixed_because", operators.map(_._2.fixedBecause))
    message.whole("operator_repartition", operators.map(o => truth(o._2.repartition)).toArray)
    message.whole("edge_layout", edges.map(_._1).toArray)
    message.text("edge_source", edges.map(_._2.source))
    message.text("edge_target", edges.map(_._2.target))
    message.text("edge_grouping", edges.map(_._2.grouping))
    message.whole("instance_id", changed.flatMap(_.instances.map(_.id)).toArray)
  }

  /** until: no later epoch, so that the layouts are those of these epochs. */
  private def planned(message: ArrowMessage, cursor: Long, until: Long): Unit = {
    val epochs = Ledger.plannedAfter(cursor).filter(_.stamp <= until).map(_.epoch)
    if (epochs.nonEmpty) {
      val seats = epochs.zipWithIndex.flatMap { case (e, i) => e.seated.map(i.toLong -> _) }
      message.text("epoch_topology", epochs.map(_.topology))
      message.text("epoch_run", epochs.map(_.runId))
      message.whole("epoch_number", epochs.map(_.epoch).toArray)
      message.whole("epoch_orders", epochs.map(_.orders.version).toArray)
      message.whole("epoch_planned_ms", epochs.map(_.plannedMs).toArray)
      message.whole("seat_epoch", seats.map(_._1).toArray)
      message.text("seat_operator", seats.map(_._2.operator))
      message.whole("seat_instance", seats.map(_._2.index.toLong).toArray)
      message.text("seat_executor", seats.map(_._2.executor))
      message.text("seat_wanted", seats.map(_._2.wanted))
      message.text("seat_because", seats.map(_._2.because))
    }
  }

  private def changed(message: ArrowMessage, lives: Seq[LifeReport]): Unit = if (lives.nonEmpty) {
    message.text("life_topology", lives.map(_.topology))
    message.text("life_run", lives.map(_.runId))
    message.whole("life_epoch", lives.map(_.epoch).toArray)
    message.text("life_operator", lives.map(_.operator))
    message.whole("life_instance", lives.map(_.index.toLong).toArray)
    message.text("life_executor", lives.map(_.executor))
    message.whole("life_pid", lives.map(_.pid.toLong).toArray)
    message.whole("life_tid", lives.map(_.tid.toLong).toArray)
    message.whole("life_started_ms", lives.map(_.startedMs).toArray)
    message.whole("life_ended_ms", lives.map(_.endedMs).toArray)
    message.whole("life_read", lives.map(_.rowsRead).toArray)
  }

  private def output(message: ArrowMessage, topologies: Seq[TopologyTotals], cursor: Long): Unit = {
    val of, at, rows = mutable.ArrayBuilder.make[Long]
    for (t <- topologies) t.output.after(cursor) { (centisecond, count) =>
      of += t.id
      at += centisecond
      rows += count
    }
    if (of.length > 0) {
      message.whole("output_topology", of.result())
      message.whole("output_centisecond", at.result())
      message.whole("output_rows", rows.result())
    }
  }

  private def latency(message: ArrowMessage, topologies: Seq[TopologyTotals], cursor: Long): Unit = {
    val of, clock, bucket, rows = mutable.ArrayBuilder.make[Long]
    val changed = for {
      t <- topologies
      (l, number) <- Seq(t.due -> 0L, t.read -> 1L, t.record -> 2L) if l.stamp > cursor
    } yield (t, number, l)
    for ((t, number, l) <- changed) l.after(cursor) { b =>
      of += t.id
      clock += number
      bucket += b.toLong
      rows += l.rows(b)
    }
    if (changed.nonEmpty) {
      message.whole("bucket_topology", of.result())
      message.whole("bucket_clock", clock.result())
      message.whole("bucket", bucket.result())
      message.whole("bucket_rows", rows.result())
      message.whole("latency_topology", changed.map(_._1.id).toArray)
      message.whole("latency_clock", changed.map(_._2).toArray)
      message.whole("latency_sum_ms", changed.map(_._3.sumMs).toArray)
      message.whole("latency_epoch_max_ms", changed.map(_._3.epochMaxMs).toArray)
      message.whole("latency_max_ms", changed.map(_._3.maxMs).toArray)
    }
  }
}
