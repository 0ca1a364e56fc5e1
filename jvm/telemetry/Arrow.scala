package org.apache.spark.barograph.telemetry

import java.io.ByteArrayOutputStream
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.{BigIntVector, FieldVector, VarCharVector, VectorSchemaRoot}
import org.apache.arrow.vector.ipc.ArrowStreamWriter

/** A table of text and whole-number columns as one Arrow stream. */
object Arrow {
  sealed trait Column { def name: String }
  final case class Text(name: String, values: Seq[String]) extends Column
  final case class Whole(name: String, values: Seq[Long]) extends Column

  def bytes(columns: Column*): Array[Byte] = {
    val allocator = new RootAllocator()
    val vectors: Seq[FieldVector] = columns.map {
      case Text(name, values) =>
        val vector = new VarCharVector(name, allocator)
        values.zipWithIndex.foreach { case (v, i) => vector.setSafe(i, v.getBytes(UTF_8)) }
        vector.setValueCount(values.size)
        vector
      case Whole(name, values) =>
        val vector = new BigIntVector(name, allocator)
        values.zipWithIndex.foreach { case (v, i) => vector.setSafe(i, v) }
        vector.setValueCount(values.size)
        vector
    }
    val root = new VectorSchemaRoot(vectors.asJava)
    val out = new ByteArrayOutputStream()
    try {
      root.setRowCount(vectors.head.getValueCount)
      val writer = new ArrowStreamWriter(root, null, Channels.newChannel(out))
      writer.start()
      writer.writeBatch()
      writer.end()
      writer.close()
    } finally {
      root.close()
      allocator.close()
    }
    out.toByteArray
  }
}
