package org.apache.spark.barograph.planner

import scala.collection.mutable

import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.kafka.{KafkaInput, Topics}
import org.apache.spark.barograph.orders.{Ledger, TopologyOrders}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.v2.{RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist

/**
 * Called for every physical plan; changes those with a real-time scan. Decides nothing: it asks [[Ledger]] for the
 * topology's orders, once, so that the whole epoch runs by one plan.
 */
class SteerRealTime(session: SparkSession) extends Rule[SparkPlan] with Logging {
  import SparkInternals._

  override def apply(plan: SparkPlan): SparkPlan = {
    val context = SparkInternals.context(session)
    val queryId = context.getLocalProperty(QueryIdProperty)
    val epoch = context.getLocalProperty(EpochProperty)
    val runId = context.getLocalProperty(RunIdProperty)
    // Columnar rules see sub-plans too; only the whole plan of an epoch ends in a write.
    if (queryId == null || epoch == null || !plan.isInstanceOf[WriteToDataSourceV2Exec] ||
        !Stage.onStreamingPath(plan)) {
      plan
    } else {
      val active = activeQueries(session)
      val query = active.find(_.id.toString == queryId)
      // Spark's own check is off so that our nodes may be added; here it is made on the query as the user wrote it.
      if (context.getConf.getBoolean("spark.barograph.allowlistCheck", defaultValue = true)) {
        RealTimeModeAllowlist.checkAllowedPhysicalOperator(plan, throwException = true)
        query.map(_.sink).filterNot(sink => SteerRealTime.OtherSinks(sink.getClass.getName))
          .foreach(RealTimeModeAllowlist.checkAllowedSink(_, throwException = true))
      }
      Ledger.keepOnly(active.map(_.runId.toString).toSet + runId)
      val name = SteerRealTime.topologyName(query.map(_.name).orNull, queryId)
      // What is planned tells that everything before it is committed: orders, restarts and counts rely on that.
      if (Ledger.hasBegunBefore(name, runId, epoch.toLong)) query.foreach(awaitCommit(_, epoch.toLong - 1L))
      steer(plan.asInstanceOf[WriteToDataSourceV2Exec], name, runId, epoch.toLong)
    }
  }

  private def steer(plan: WriteToDataSourceV2Exec, name: String, runId: String, epoch: Long): SparkPlan = {
    val orders = Ledger.begin(name, runId, epoch)
    val cuttable = makeCuttable(plan, Marks(name, runId, epoch))
    val named = nameStages(cuttable)
    val scaled = scale(cuttable, named, orders)
    val stages = nameStages(scaled)
    val sketch = sketchOf(stages)
    val scans = stages.flatMap { case (_, stage) => stage.scans }
    Topics.planned(name, runId, KafkaInput.topicsOf(scans.filter(readsAll).flatMap(_.inputPartitions)))
    val seats = Ledger.seat(name, runId, epoch, sketch, SparkInternals.context(session))
    mark(scaled, stages, seats, Marks(name, runId, epoch))
  }

  /** Whether it reads all partitions of its topics, also those to come. One with option assign never reads others. */
  private def readsAll(scan: RealTimeStreamScanExec): Boolean =
    SteerRealTime.Subscribed.exists(scan.stream.toString.startsWith)

  /** The scan reads the source in slices, so that an order can end the epoch. */
  private def makeCuttable(plan: SparkPlan, of: Marks): SparkPlan = plan.transformUp {
    // An epoch of length 0 only loads state and reads nothing. It gets one millisecond, so that the scan differs from
    // Spark's (see CuttableScan.RoomMs).
    case r: RealTimeStreamScanExec if r.getClass == classOf[RealTimeStreamScanExec] =>
      val room = if (r.batchDurationMs > 0L) CuttableScan.RoomMs else 1L
      new CuttableScan(r.output, r.scan, r.stream, r.start, r.batchDurationMs + room, r.batchDurationMs, of)
  }

  /**
   * Every stage with its name, sources first. Names depend only on the shape of the query and on the names that its
   * author gave, so they are the same in every epoch, after every restart and every rescale.
   */
  private def nameStages(plan: SparkPlan): Seq[(String, Stage)] = {
    val found = mutable.ArrayBuffer[Stage]()
    def visit(stage: Stage): Unit = {
      stage.inputs.foreach(e => visit(new Stage(e.child, isSink = false)))
      found += stage
    }
    visit(new Stage(plan.children.head, isSink = true))
    val taken = mutable.Set[String]() ++ found.flatMap(_.givenName)
    found.toSeq.map { stage =>
      val name = stage.givenName.getOrElse {
        val names = stage.kind +: LazyList.from(2).map(n => s"${stage.kind}-$n")
        names.find(n => taken.add(n)).get
      }
      name -> stage
    }
  }

  private def scale(plan: SparkPlan, stages: Seq[(String, Stage)], orders: TopologyOrders): SparkPlan = {
    val counts = stages.flatMap { case (name, stage) =>
      orders.parallelism.get(name).filter(_ => stage.fixedBecause.isEmpty).map(stage.inputs.head -> _)
    }
    def rescale(node: SparkPlan): SparkPlan = {
      val children = node.children.map(rescale)
      val rebuilt =
        if (children.zip(node.children).forall { case (a, b) => a eq b }) node else node.withNewChildren(children)
      // Compared by identity in the original plan: two exchanges may be equal.
      (rebuilt, counts.collectFirst { case (exchange, n) if exchange eq node => n }) match {
        case (exchange: ShuffleExchangeExec, Some(n)) =>
          exchange.outputPartitioning match {
            case hash: HashPartitioning => exchange.copy(outputPartitioning = hash.copy(numPartitions = n))
            case _ => exchange.copy(outputPartitioning = RoundRobinPartitioning(n))
          }
        case _ => rebuilt
      }
    }
    if (counts.isEmpty) plan else rescale(plan)
  }

  private def sketchOf(stages: Seq[(String, Stage)]): TopologySketch = {
    val byTop = stages.map { case (name, stage) => stage.top -> name }
    def nameOf(top: SparkPlan): String = byTop.collectFirst { case (t, n) if t eq top => n }.get
    TopologySketch(
      stages.map { case (name, s) =>
        OperatorSketch(name, s.parallelism, s.scans.nonEmpty, s.isSink, s.stateful, s.fixedBecause, s.repartition)
      },
      stages.flatMap { case (name, s) =>
        s.inputs.map(e => EdgeSketch(nameOf(e.child), name, Stage.grouping(e)))
      })
  }

  /** Put an [[OperatorExec]] on top of every stage: the topmost preference for a place wins. */
  private def mark(
      plan: SparkPlan,
      stages: Seq[(String, Stage)],
      seats: Map[String, Seq[String]],
      marks: Marks): SparkPlan = {
    def nameOf(top: SparkPlan): Option[(String, Boolean)] =
      stages.collectFirst { case (n, s) if s.top eq top => (n, s.isSink) }
    def times(output: Seq[Attribute]): SinkTimes = SinkTimes(
      TimeColumn.of(output, session.conf.get(SteerRealTime.DueColumn, SteerRealTime.DueColumnDefault)),
      TimeColumn.of(output, session.conf.get(SteerRealTime.ReadColumn, SteerRealTime.ReadColumnDefault)))
    def rebuild(node: SparkPlan): SparkPlan = {
      val below = node match {
        case named: CollectMetricsExec if named.name.startsWith(Stage.NamePrefix) => rebuild(named.child)
        case _ =>
          val children = node.children.map(rebuild)
          if (children.zip(node.children).forall { case (a, b) => a eq b }) node
          else node.withNewChildren(children)
      }
      nameOf(node).map { case (n, sink) =>
        OperatorExec(below, n, Option.when(sink)(times(below.output)), seats(n), marks)
      }.getOrElse(below)
    }
    plan.withNewChildren(plan.children.map(rebuild))
  }
}

object SteerRealTime {
  /** How sources describe themselves in a query's progress. */
  private val Subscribed = Seq("KafkaV2[Subscribe[", "KafkaV2[SubscribePattern[")

  /** The name of the query; one without a name, or with an empty one, is known by its id, as in a supervisor. */
  def topologyName(queryName: String, queryId: String): String =
    Option(queryName).filter(_.nonEmpty).getOrElse(s"query-${queryId.take(8)}")

  /**
   * Sinks that Spark does not list and that queries may have all the same. Two drop their rows: that of Spark, which
   * workloads use, and ours, which also times them. One keeps them in the driver, for tests.
   */
  private val OtherSinks = Set(
    "org.apache.spark.sql.execution.datasources.noop.NoopTable$",
    "org.apache.spark.barograph.source.TimedTable",
    "org.apache.spark.sql.execution.streaming.sources.MemorySink")

  /** Settings that name the columns with the times at which a row was due and was read. */
  val DueColumn = "spark.barograph.latency.column"
  val DueColumnDefault = "barograph_due_ms"
  val ReadColumn = "spark.barograph.latency.readColumn"
  val ReadColumnDefault = "barograph_read_ms"
}
