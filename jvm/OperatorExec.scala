package org.apache.spark.barograph

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/** Which run of which topology, and which epoch. */
final case class Marks(topology: String, runId: String, epoch: Long)

/**
 * The top of an operator: says where each instance is to run and lets the executor know what it runs. At the top,
 * because a state store further down also states a preference for a place and the topmost one wins.
 */
case class OperatorExec(child: SparkPlan, operator: String, sink: Boolean, seats: Seq[String], marks: Marks)
  extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def doExecute(): RDD[InternalRow] =
    new OperatorRDD(child.execute(), operator, sink, seats, marks)
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

class OperatorRDD(parent: RDD[InternalRow], operator: String, sink: Boolean, @transient seats: Seq[String], marks: Marks)
  extends RDD[InternalRow](parent) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    seats.lift(split.index).filter(_.nonEmpty).map(seat => s"executor_$seat").toSeq

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val life = Lives.begin(marks, operator, split.index, context)
    val rows = firstParent[InternalRow].iterator(split, context)
    if (!sink) rows
    else new Iterator[InternalRow] {
      override def hasNext: Boolean = rows.hasNext
      override def next(): InternalRow = { life.row(); rows.next() }
    }
  }
}
