package org.apache.spark.barograph.planner

import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan, UnionExec}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperatorsUtils, StateStoreWriter}

/**
 * One stage of a real-time plan: the nodes between two shuffles. `top` is the node whose rows leave the stage,
 * `inputs` are the exchanges it reads.
 */
final class Stage(val top: SparkPlan, val isSink: Boolean) {
  private val nodes: Seq[SparkPlan] = Stage.nodesWithin(top)
  val inputs: Seq[ShuffleExchangeExec] = nodes.collect { case e: ShuffleExchangeExec => e }
  val scans: Seq[RealTimeStreamScanExec] = nodes.collect { case s: RealTimeStreamScanExec => s }
  val hasUnion: Boolean = nodes.exists(_.isInstanceOf[UnionExec])
  private val states: Seq[String] = nodes.collect { case w: StateStoreWriter => w.shortName }
  val stateful: Boolean = states.nonEmpty
  private val global: Boolean = inputs.nonEmpty && inputs.forall(_.outputPartitioning == SinglePartition)

  /** Whether its number of instances can be changed by a repartition of its state. */
  val repartition: Boolean = stateful && scans.isEmpty && !global && states.forall(Stage.Repartitionable)
  val givenName: Option[String] = nodes.collectFirst {
    case m: CollectMetricsExec if m.name.startsWith(Stage.NamePrefix) => Stage.operatorName(m.name)
  }.filter(_.nonEmpty)

  /** What the stage mostly does, as a word that does not change while the query exists. */
  def kind: String =
    if (scans.nonEmpty) "source"
    else if (stateful) {
      states.head match {
        case "StatefulStreamlineAggregate" | "stateStoreSave" => "aggregate"
        case "dedupe" | "dedupeWithinWatermark" => "deduplicate"
        case other => other.replaceAll("[^A-Za-z0-9]+", "-").toLowerCase
      }
    } else "map"

  def parallelism: Int = Stage.tasks(top)

  /** Why the number of instances cannot change at an epoch's boundary; empty if it can. */
  def fixedBecause: String =
    if (scans.nonEmpty) "a source has as many instances as its input has partitions"
    else if (global) "a global grouping has exactly one instance"
    else if (stateful && !repartition) s"Spark cannot repartition the state of ${states.mkString(", ")}"
    else if (stateful) "its state is split over its instances: changing their number takes a repartition of the state"
    else if (hasUnion || inputs.size != 1) "it reads a union, whose instances are those of its inputs"
    else inputs.head.outputPartitioning match {
      case _: HashPartitioning | _: RoundRobinPartitioning => ""
      case _ => "its rows are sent to instances by number (repartitionById)"
    }
}

object Stage {
  /** Operators whose state Spark can repartition offline. A real-time aggregate has the state of an ordinary one. */
  private val Repartitionable: Set[String] = {
    import StatefulOperatorsUtils._
    Set(STATEFUL_STREAMLINE_AGGREGATE_EXEC_OP_NAME, STATE_STORE_SAVE_EXEC_OP_NAME, DEDUPLICATE_EXEC_OP_NAME,
      DEDUPLICATE_WITHIN_WATERMARK_EXEC_OP_NAME) ++ TRANSFORM_WITH_STATE_OP_NAMES
  }

  /** A user names an operator with `df.observe("barograph:NAME", count(lit(1)))`; the planner removes the node. */
  val NamePrefix = "barograph:"

  /**
   * Addresses such as query/operator/1=node are read by these characters, so that they are in no operator's name. White
   * space is that of Unicode, and control characters count as such: a controller refuses names with any of them.
   */
  private[planner] def operatorName(metric: String): String =
    metric.stripPrefix(NamePrefix).replaceAll("(?U)[\\s/=,@\\p{Cntrl}]", "_")

  def onStreamingPath(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[RealTimeStreamScanExec])

  /** Nodes of the stage that ends at `top`: down to, and including, the exchanges and scans it reads. */
  private def nodesWithin(top: SparkPlan): Seq[SparkPlan] = top match {
    case leaf @ (_: ShuffleExchangeExec | _: RealTimeStreamScanExec) => Seq(leaf)
    case node => node +: node.children.filter(onStreamingPath).flatMap(nodesWithin)
  }

  /**
   * How many tasks run a node. A union has those of all its inputs one after the other, unless they are distributed
   * alike: then task i reads partition i of every input.
   */
  private def tasks(node: SparkPlan): Int = node match {
    case scan: RealTimeStreamScanExec => scan.inputPartitions.size
    case exchange: ShuffleExchangeExec => exchange.outputPartitioning.numPartitions
    case union: UnionExec =>
      union.outputPartitioning match {
        case _: UnknownPartitioning | _: KeyedPartitioning => union.children.map(tasks).sum
        case alike => alike.numPartitions
      }
    case other => other.children.filter(onStreamingPath).map(tasks).sum
  }

  def grouping(exchange: ShuffleExchangeExec): String = exchange.outputPartitioning match {
    case SinglePartition => "global"
    case _: RoundRobinPartitioning => "shuffle"
    case _: HashPartitioning => "fields"
    case _ => "direct"
  }
}
