package org.apache.spark.barograph.planner

/**
 * An operator as the planner sees it: a stage of the query. fixedBecause: why its parallelism cannot change at an
 * epoch's boundary. repartition: it can change if the query is stopped and its state is repartitioned.
 */
final case class OperatorSketch(
    name: String,
    parallelism: Int,
    source: Boolean,
    sink: Boolean,
    stateful: Boolean,
    fixedBecause: String,
    repartition: Boolean)

final case class EdgeSketch(source: String, target: String, grouping: String)

final case class TopologySketch(operators: Seq[OperatorSketch], edges: Seq[EdgeSketch]) {
  def parallelism(operator: String): Int = operators.find(_.name == operator).map(_.parallelism).getOrElse(0)
  def instances: Seq[(String, Int)] = operators.flatMap(o => (0 until o.parallelism).map(o.name -> _))
}
