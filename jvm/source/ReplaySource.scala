package org.apache.spark.barograph

import java.util

import org.apache.spark.barograph.source.{Replay, ReplayTable}
import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The replay source: a load in which row (partition, k) is a pure function of both, due at a time that the load shape
 * gives. So loads can be replayed, lag is visible, latency is free of coordinated omission, and exactly-once can be
 * checked. Columns: partition, k, due_ms (epoch milliseconds) and value, a line of words or a number; with the option
 * read_time also read_ms, when the row was handed out.
 *
 * {{{ spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("segments", ...).load() }}}
 *
 * As a stream it supports real-time and micro-batch triggers; as a batch it gives the rows of a closed load, from which
 * the expected result of a run is computed.
 */
class ReplaySource extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = Replay.of(options).schema

  override def getTable(schema: StructType, transforms: Array[Transform], map: util.Map[String, String]): Table =
    new ReplayTable(Replay.of(new CaseInsensitiveStringMap(map)))
}
