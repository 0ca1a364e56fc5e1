package org.apache.spark.barograph.telemetry

import java.io.ByteArrayInputStream

import scala.jdk.CollectionConverters._

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.complex.ListVector
import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Assertions._

import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger}
import org.apache.spark.barograph.planner.{EdgeSketch, OperatorSketch, TopologySketch}

/** The driver's totals with reports and executors that a test makes up, and a clock of its own. */
abstract class TotalsFixture {
  val live = Seq(ExecutorSeats("1", "h1", 8, 0L, 8), ExecutorSeats("2", "h2", 8, 0L, 8))
  val Second = 1000000000L
  var clockNs = Second

  @BeforeEach def forget(): Unit = {
    Ledger.reset()
    Totals.reset()
  }

  def sketch(counts: Int, reads: Int = 1) = TopologySketch(
    Seq(
      OperatorSketch("read", reads, source = true, sink = false, stateful = false, "", repartition = false),
      OperatorSketch("count", counts, source = false, sink = true, stateful = true, "", repartition = false)),
    Seq(EdgeSketch("read", "count", "fields")))

  def plan(run: String, epoch: Long, counts: Int = 2, topology: String = "t", reads: Int = 1): Unit = {
    Ledger.begin(topology, run, epoch)
    Ledger.seat(topology, run, epoch, sketch(counts, reads), live)
  }

  def meter(executed: Long, sent: Seq[Long] = Nil, due: Seq[Long] = Nil, busyNs: Long = 0L) =
    MeterReport(executed, sent.sum, executed, busyNs, 0L, 0L, sent.toArray, due.toArray, Array.emptyLongArray,
      -1L, -1L, -1L, -1L)

  def life(
      run: String, epoch: Long, operator: String, index: Int, meter: MeterReport, ended: Boolean = false,
      output: Seq[Long] = Nil, topology: String = "t", outputBefore: Long = 0L): LifeReport =
    LifeReport(topology, run, epoch, operator, index, "1", 1, 2, 3L, if (ended) 4L else 0L, meter.executed,
      outputBefore, output.toArray, meter)

  def report(lives: LifeReport*): Unit = Totals.take("1", lives, ProcessUse(5L, 6L), clockNs)

  /** A reader with its own cursor. */
  class Reader {
    var cursor = 0L
    var found: Map[String, Seq[Any]] = Map.empty

    def look(active: String => Boolean = _ => true): Reader = {
      val bytes = View.of(cursor, withMeters = true, live, 0L, active, clockNs)
      val allocator = new RootAllocator()
      val reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator)
      assertTrue(reader.loadNextBatch())
      found = reader.getVectorSchemaRoot.getFieldVectors.asScala.map { v =>
        v.getName -> v.asInstanceOf[ListVector].getObject(0).asScala.toSeq.map(x => x.toString: Any)
      }.toMap
      reader.close()
      allocator.close()
      cursor = whole("cursor").head
      this
    }

    def whole(name: String): Seq[Long] = found.getOrElse(name, Nil).map(_.toString.toLong)
    def has(name: String): Boolean = found.contains(name)
  }
}
